// One event stream per browser. The tab with the lock listens and broadcasts to the others; when it closes, another tab
// takes over. EventSource resumes after the last event by itself.
const CHANNEL = "assent-live";

export function follow(kinds, changed, connection) {
  const channel = new BroadcastChannel(CHANNEL);
  let lost = 0;
  const receive = ({ data }) => {
    if (data.change) return changed(data.change);
    lost = data.lost;
    connection({ lost });
  };
  channel.addEventListener("message", receive);
  const tell = (data) => {
    channel.postMessage(data);
    receive({ data });
  };
  setInterval(() => lost && connection({ lost }), 30_000);
  if (navigator.locks) navigator.locks.request(CHANNEL, () => listen(kinds, tell));
  else listen(kinds, receive);
}

/** Never resolves: the tab holds the lock until it closes. */
function listen(kinds, tell) {
  return new Promise(() => {
    let lost = 0;
    let source;
    const connect = () => {
      source = new EventSource("/api/inbox/events");
      source.addEventListener("open", () => {
        if (lost) tell({ lost: 0 });
        lost = 0;
      });
      source.addEventListener("error", () => {
        if (!lost) tell({ lost: (lost = Date.now()) });
        if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5_000);
      });
      for (const kind of kinds) source.addEventListener(kind, (event) => tell({ change: JSON.parse(event.data) }));
    };
    connect();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => event.persisted && connect());
  });
}
