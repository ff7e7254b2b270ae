// Keys, relative times and the number of changes. Everything here works without it; see `words.py` for the table of keys.
const typing = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, dialog");
const rows = () => [...document.querySelectorAll(".list .request a")];

function move(step) {
  const all = rows();
  const next = all.indexOf(document.activeElement) + step;
  all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
}

function press(key) {
  const found = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!found) return false;
  if (found.matches("textarea")) found.focus();
  else if (found.matches("summary")) open(found);
  else found.click();
  return true;
}

function open(summary) {
  summary.parentElement.open = true;
  const first = summary.parentElement.querySelector("textarea, input:not([type=hidden]), select");
  first?.focus();
  first?.scrollIntoView({ block: "nearest" });
}

const help = document.getElementById("help");
const moves = { j: () => move(1), k: () => move(-1), "/": () => document.querySelector("[type=search]")?.focus(), "?": () => help?.showModal() };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape" && typing(event.target)) return event.target.blur();
  if (typing(event.target)) return;
  if (moves[event.key]) moves[event.key]();
  else if (event.key.length !== 1 || !press(event.key)) return;
  event.preventDefault();
});

// "Approve with 2 changes": what stands in a field against what stood there at first.
const shown = (field) => (field.type === "checkbox" ? (field.checked ? "true" : "") : field.value);
function count(form) {
  const changed = [...form.querySelectorAll("[data-shown]")].filter((field) => shown(field) !== field.dataset.shown);
  for (const field of form.querySelectorAll(".field")) {
    field.classList.toggle("changed", changed.some((one) => field.contains(one)));
  }
  const button = form.querySelector("[data-counts]");
  if (!button) return;
  const number = changed.length;
  button.textContent = number ? `Approve with ${number} change${number === 1 ? "" : "s"}` : "Approve unchanged";
}
for (const form of document.querySelectorAll("form:has([data-edits])")) {
  form.addEventListener("input", () => count(form));
  count(form);
}

const units = [[31536000, "y"], [2592000, "mo"], [86400, "d"], [3600, "h"], [60, "min"]];
function relative(seconds) {
  const [size, unit] = units.find(([one]) => Math.abs(seconds) >= one) ?? [1, ""];
  if (!unit) return seconds >= 0 ? "just now" : "in less than a minute";
  const number = Math.floor(Math.abs(seconds) / size);
  return seconds >= 0 ? `${number} ${unit} ago` : `in ${number} ${unit}`;
}
setInterval(() => {
  for (const time of document.querySelectorAll("time")) {
    time.textContent = relative((Date.now() - Date.parse(time.dateTime)) / 1000);
  }
}, 30_000);
