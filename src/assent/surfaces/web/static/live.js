// One event stream per browser. The tab with the lock listens and broadcasts to the others; when it closes, another tab
// takes over. Every tab knows the number of the last change that it shows, so that none is missed or repeated: a new
// stream begins after it, and a new tab gets the changes since its page was made.
const CHANNEL = "assent-live";
const MOST_KEPT = 500;

export function follow(kinds, after, changed, connection) {
  const channel = new BroadcastChannel(CHANNEL);
  let known = after;
  let lost = 0;
  const receive = (data) => {
    if (data.change && data.number > known) {
      known = data.number;
      changed(data.change);
    } else if (data.lost !== undefined) connection({ lost: (lost = data.lost) });
  };
  channel.addEventListener("message", ({ data }) => receive(data));
  channel.postMessage({ since: known });
  setInterval(() => lost && connection({ lost }), 30_000);
  const tell = (data) => {
    channel.postMessage(data);
    receive(data);
  };
  const lead = (say) => listen(kinds, () => known, channel, say);
  if (navigator.locks) navigator.locks.request(CHANNEL, () => lead(tell));
  else lead(receive);
}

/** Never resolves: the tab holds the lock until it closes. */
function listen(kinds, known, channel, tell) {
  return new Promise(() => {
    const kept = [];
    let lost = 0;
    let source;
    const notice = (event) => {
      const data = { number: Number(event.lastEventId), change: JSON.parse(event.data) };
      kept.push(data);
      if (kept.length > MOST_KEPT) kept.shift();
      tell(data);
    };
    const connect = () => {
      source = new EventSource(`/api/inbox/events?after=${known()}`);
      source.addEventListener("open", () => {
        if (lost) tell({ lost: 0 });
        lost = 0;
      });
      source.addEventListener("error", () => {
        if (!lost) tell({ lost: (lost = Date.now()) });
        if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5_000);
      });
      for (const kind of kinds) source.addEventListener(kind, notice);
    };
    channel.addEventListener("message", ({ data }) => {
      if (data.since === undefined) return;
      for (const change of kept) if (change.number > data.since) channel.postMessage(change);
    });
    connect();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => event.persisted && connect());
  });
}
