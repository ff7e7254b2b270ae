// Progressive enhancement of a conversation: forms are sent in place, the words of the assistant appear as it writes them,
// and what is decided elsewhere shows here. Without it, every form leads to the page again.
import { SETTLES, tell } from "./decision.js";
import { follow } from "./live.js";

const talk = document.getElementById("talk");
const find = (selector) => talk.querySelector(selector);
const { address, kinds, after, unsent, working } = talk.dataset;

let waiting;
let turn = 0;
let settling;

const proposed = () => find("#decision [name=hash]")?.value;

/** A click that was meant for what stood here before does not decide a proposal that just appeared. */
function settle() {
  find("#decision")?.classList.add("settling");
  clearTimeout(settling);
  settling = setTimeout(() => find(".settling")?.classList.remove("settling"), SETTLES);
}
addEventListener("pointerdown", () => find(".settling") && settle(), true);

async function request(url, options = {}) {
  const mine = ++turn;
  talk.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(url, { ...options, headers: { "Assent-Part": "talk" } });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) return await hear(response, mine);
    const html = await response.text();
    if (mine !== turn) return;
    if (response.redirected || !html.includes('role="log"')) return location.assign(address); // signed out, or gone
    show(html);
    if (find("[data-run]")) wait();
  } catch {
    tell(unsent, false);
  } finally {
    if (mine === turn) talk.removeAttribute("aria-busy");
  }
}

function show(html) {
  const typed = find("textarea:focus")?.value;
  const before = proposed();
  talk.innerHTML = html;
  if (proposed() !== before) settle();
  waiting?.close();
  const next = find(".notice button, [data-next]");
  if (next) next.focus({ preventScroll: true });
  if (typed && next?.matches("textarea") && !next.value) next.value = typed;
  talk.lastElementChild.scrollIntoView({ block: "end" });
}

/** The page with the request, then the words of the assistant, until it has answered or asks. */
async function hear(response, mine) {
  const said = new Map();
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      if (mine !== turn) return;
      if (name === "page") show(JSON.parse(data));
      else if (name === "words") write(said, JSON.parse(data));
    }
  }
  if (mine === turn) await request(address);
}

function write(said, { id, text }) {
  if (!said.has(id)) said.set(id, bubble());
  said.get(id).append(text);
  find("[data-run]")?.scrollIntoView({ block: "end" });
}

/** A page that was opened while the assistant works: shows how it ended. */
function wait() {
  waiting = new EventSource(`${address}/words`);
  for (const name of ["done", "error"]) {
    waiting.addEventListener(name, () => {
      waiting.close();
      setTimeout(() => request(address), name === "done" ? 0 : 2000);
    });
  }
}

function bubble() {
  const line = document.createElement("li");
  line.className = "agent";
  const role = Object.assign(document.createElement("p"), { className: "role", textContent: working });
  const box = Object.assign(document.createElement("div"), { className: "said" });
  const text = document.createElement("pre");
  box.append(text);
  line.append(role, box);
  find(".talk").append(line);
  return text;
}

talk.addEventListener("submit", (event) => {
  event.preventDefault();
  if (talk.getAttribute("aria-busy") && !event.target.action.endsWith("/cancel")) return;
  request(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target, event.submitter)) });
});

/** Decided elsewhere, or changed: unless the person writes, the page shows it. */
function noticed({ item }) {
  const shown = find("[data-item]")?.dataset.item;
  const writes = [...talk.querySelectorAll("textarea")].some((field) => field.value.trim());
  if (item.id === shown && !writes && !talk.getAttribute("aria-busy")) request(address);
}

if (find("[data-run]")) wait();
follow(kinds.split(" "), Number(after), noticed, () => {});
