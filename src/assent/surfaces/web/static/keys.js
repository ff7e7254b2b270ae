// Keyboard shortcuts and the command palette. An element with `data-key` reacts to its key; the help shows `KEYS` of
// words.py.
import { refusal, swallowed, texts } from "./decision.js";
import { bring, rows as listed, search } from "./rows.js";

const typing = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog");
const list = document.getElementById("list");
const rows = () => listed(list);
const link = (row) => row?.querySelector(".request a");
const seen = (one) => one.checkVisibility?.() ?? true;
const of = (key) => [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(seen);

function current(all) {
  const focused = all.findIndex((row) => row.contains(document.activeElement));
  return focused >= 0 ? focused : all.findIndex((row) => row.getAttribute("aria-current"));
}

function move(step, open) {
  const all = rows();
  const next = all[Math.max(0, Math.min(all.length - 1, current(all) + step))];
  if (!next) return;
  link(bring(list, next)).focus();
  if (document.getElementById("detail")) open(link(next));
}

/** Where an item cannot be refused as a whole, `r` leads to the first action's negative verb. */
const found = (key) => of(key) ?? (key === "r" ? document.querySelector(".segments .no input") : null);

export function press(key) {
  const target = found(key);
  if (!target) return false;
  if (target.matches("textarea, [type=radio]")) target.focus();
  else if (target.matches("summary")) unfold(target.parentElement);
  else target.click();
  if (target.matches("[popovertarget]")) focusFirst(document.getElementById(target.getAttribute("popovertarget")));
  return true;
}

function unfold(details) {
  details.open = !details.open || details.matches(".edit");
  if (details.open && details.matches(".edit")) focusFirst(details);
}

/** Focuses the first field; in a dialog without one the dialog itself, so that typed text presses no button. */
function focusFirst(within) {
  const button = within?.matches(".menu") ? ", button, a" : "";
  const first = within?.querySelector(`textarea, input:not([type=hidden]), select${button}`) ?? within;
  first?.focus();
  first?.scrollIntoView({ block: "nearest" });
}

// Text that somebody types, without a field or into one that is gone, is not a series of shortcuts.

const BURST = 400;
const PAUSE = 250;
const [DECIDES, UNDOES] = ["a", "z"];
let last = -Infinity;
let burst = -Infinity;
let waits;

/** Whether this key continues a burst of typing. */
function bursts(event) {
  const quick = event.timeStamp - last < BURST;
  last = event.timeStamp;
  if (quick) burst = last;
  return quick;
}

/** Presses the key once no other follows within a pause; the item must be the same then. */
function deliberately(key) {
  const shown = document.querySelector("#detail [data-item]")?.dataset.item;
  clearTimeout(waits);
  waits = setTimeout(() => {
    waits = undefined;
    const why = refusal();
    if (why || document.querySelector("#detail [data-item]")?.dataset.item !== shown) swallowed(key, why);
    else press(key);
  }, PAUSE);
}

function shortcut(event) {
  const { key } = event;
  const decides = document.getElementById("detail")?.contains(found(key));
  if (bursts(event)) {
    if (waits && key === DECIDES) return true; // pressed twice
    clearTimeout(waits);
    waits = undefined;
    if (texts().burst && /\S/.test(key)) swallowed(key, texts().burst);
    return true;
  }
  if (!found(key)) {
    if (document.getElementById("detail") && /^[aerv]$/.test(key)) swallowed(key, refusal() || texts().none);
    return false;
  }
  const why = decides && key !== "u" ? refusal(key !== DECIDES) : "";
  if (why) swallowed(key, why);
  else if (key === DECIDES && found(key).matches("button")) deliberately(key);
  else press(key);
  return true;
}

/** Enter in a field of the decision sends nothing: it chooses, or says which keys send. */
function entered(event) {
  const { target } = event;
  if (target.nodeName !== "INPUT" || target.form?.id !== "decision") return;
  event.preventDefault();
  if (["radio", "checkbox"].includes(target.type)) target.click();
  else swallowed("Enter", texts().enter);
}

/** Sends the form that somebody writes in, or what the bar says unless a dialog covers it. */
function send() {
  const within = document.querySelector("[popover]:popover-open") ?? document.activeElement?.closest("form:not(#decision), .dialog");
  const primary = document.querySelector("dialog:modal") ? null : document.querySelector("[data-primary]");
  const button = within?.querySelector("button:not([type=button])") ?? primary;
  const why = refusal();
  if (why) swallowed("Ctrl Enter", why);
  else button?.click();
}

export function setUpKeys({ open, toggle }) {
  const help = document.getElementById("help");
  const moves = {
    j: () => move(1, open),
    k: () => move(-1, open),
    x: () => toggle(rows()[current(rows())]?.querySelector("[name=chosen]:enabled") ?? { click() {} }),
    "/": () => document.querySelector("[type=search]")?.focus(),
    "?": () => help?.showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return palette();
    }
    if (command && event.key === "Enter" && document.getElementById("detail")) {
      event.preventDefault();
      return event.repeat ? undefined : send();
    }
    if (command || event.altKey || event.repeat) return;
    if (event.key === "Escape") {
      last = burst = -Infinity;
      if (typing(event.target)) event.target.blur();
      return;
    }
    if (event.key === "Enter") return entered(event);
    if (event.key.length !== 1) return;
    if (typing(event.target)) return void (last = burst = event.timeStamp);
    if (document.querySelector("[popover]:popover-open")) return;
    if (event.key === " " && event.target.closest("button, summary, input, a")) return;
    const calm = event.timeStamp - burst >= BURST;
    if (moves[event.key] && calm) moves[event.key]();
    else if (event.key === UNDOES && calm && of(UNDOES) && !refusal(true)) press(UNDOES); // also right after a decision
    else if (!shortcut(event)) return;
    event.preventDefault();
  });
}

/** All shortcuts and navigation links of the page. */
function commands() {
  const acts = [...document.querySelectorAll("[data-key]")].filter(seen);
  const name = (one) => one.getAttribute("aria-label") ?? [...one.childNodes].filter((node) => node.nodeName !== "KBD").map((node) => node.textContent).join("").trim();
  const act = (key) => () => (refusal(key !== DECIDES) ? swallowed(key, refusal(key !== DECIDES)) : press(key));
  const named = acts.map((one) => [name(one), act(one.dataset.key), one.dataset.key]);
  const place = (one) => (one.querySelector(":scope > span:not(.count)") ?? one.firstChild).textContent.trim();
  const places = [...document.querySelectorAll("#side a:not(.brand), .tabs a")].map((one) => [place(one), () => one.click(), ""]);
  return [...named, ...places].filter(([name]) => name);
}

function palette() {
  if (document.getElementById("palette")) return;
  const dialog = Object.assign(document.createElement("dialog"), { id: "palette", className: "palette" });
  dialog.setAttribute("aria-label", document.getElementById("help").dataset.commands);
  const input = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off" });
  const label = document.getElementById("help").dataset.commands;
  input.setAttribute("aria-label", label);
  input.placeholder = label;
  const options = document.createElement("ul");
  dialog.append(input, options);
  const known = commands();
  const fill = () => {
    const wanted = input.value.trim().toLowerCase();
    options.replaceChildren(...known.filter(([name]) => name.toLowerCase().includes(wanted)).slice(0, 12).map(([name, act, key]) => option(name, act, key, dialog)));
  };
  let soon;
  input.addEventListener("input", () => {
    fill();
    clearTimeout(soon);
    const text = input.value.trim();
    soon = setTimeout(async () => {
      const items = text.length > 1 ? await search(text) : [];
      if (text === input.value.trim()) options.append(...items.map((item) => option(item.title, () => location.assign(item.address), "", dialog, item.summary)));
    }, 200);
  });
  dialog.addEventListener("keydown", (event) => {
    const all = [...options.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (all[at - 1] ?? input).focus();
    else if (event.key === "Enter" && at < 0) all[0]?.click();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  fill();
  dialog.showModal();
}

function option(name, act, key, dialog, more) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  if (more) button.append(Object.assign(document.createElement("span"), { className: "quiet", textContent: more }));
  if (key) button.append(Object.assign(document.createElement("kbd"), { textContent: key }));
  button.addEventListener("click", () => {
    dialog.close();
    act();
  });
  item.append(button);
  return item;
}
