// Keyboard shortcuts and the command palette. An element with `data-key` reacts to its key; the help shows `KEYS` of
// words.py.
import { bring, rows as listed, search } from "./rows.js";

const typing = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog");
const list = document.getElementById("list");
const rows = () => listed(list);
const link = (row) => row?.querySelector(".request a");

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

export function press(key) {
  const found = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find((one) => one.checkVisibility?.() ?? true);
  if (!found) return false;
  if (found.matches("textarea")) found.focus();
  else if (found.matches("summary")) reveal(found.parentElement);
  else found.click();
  if (found.matches("[popovertarget]")) focusFirst(document.getElementById(found.getAttribute("popovertarget")));
  return true;
}

function reveal(details) {
  details.open = true;
  focusFirst(details);
}

function focusFirst(within) {
  const first = within?.querySelector("textarea, input:not([type=hidden]), select, button, a");
  first?.focus();
  first?.scrollIntoView({ block: "nearest" });
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
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return palette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (typing(event.target) || document.querySelector("[popover]:popover-open")) return;
    if (moves[event.key]) moves[event.key]();
    else if (event.key.length !== 1 || !press(event.key)) return;
    event.preventDefault();
  });
}

/** All shortcuts and navigation links of the page. */
function commands() {
  const acts = [...document.querySelectorAll("[data-key]")].filter((one) => one.checkVisibility?.() ?? true);
  const named = acts.map((one) => [one.getAttribute("aria-label") ?? one.textContent.trim(), () => press(one.dataset.key), one.dataset.key]);
  const name = (one) => (one.querySelector(":scope > span:not(.count)") ?? one.firstChild).textContent.trim();
  const places = [...document.querySelectorAll("#side a:not(.brand), .tabs a")].map((one) => [name(one), () => one.click(), ""]);
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
      if (text === input.value.trim()) options.append(...items.map((item) => option(`${item.title} ${item.summary}`.slice(0, 90), () => location.assign(`/inbox/${item.id}`), "", dialog)));
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

function option(name, act, key, dialog) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  if (key) button.append(Object.assign(document.createElement("kbd"), { textContent: key }));
  button.addEventListener("click", () => {
    dialog.close();
    act();
  });
  item.append(button);
  return item;
}
