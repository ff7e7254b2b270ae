// Completes names: after an @ in a comment, and in the field of the owner. Loaded on first use.
const list = Object.assign(document.createElement("ul"), { id: "people", className: "people" });
list.setAttribute("role", "listbox");
let field;
let asked = 0;
const options = () => [...list.children];
const chosen = () => options().findIndex((one) => one.getAttribute("aria-selected") === "true");

/** The part of a name before the caret, and where it begins. */
function begun({ value, selectionStart, nodeName }) {
  const before = value.slice(0, selectionStart);
  if (nodeName === "INPUT") return before && { part: before, at: 0 };
  const [, part] = before.match(/(?:^|[^\p{L}\p{N}_@])@([^\n@]{0,60})$/u) ?? [];
  return part === undefined ? null : { part, at: before.length - part.length };
}

export async function complete(target) {
  const turn = ++asked;
  const name = begun(target);
  const found = name && !/^\s|\s\s$/.test(name.part) ? await people(name.part.trim(), target) : [];
  if (turn !== asked) return;
  if (!found.length) return close();
  offer(target, found);
}

async function people(part, target) {
  const response = await fetch(`/api/inbox/people?${new URLSearchParams({ q: part, limit: 8 })}`).catch(() => null);
  const known = response?.ok ? await response.json() : [];
  return known.filter((one) => one.name !== part && (one.decides || target.nodeName !== "INPUT")).map((one) => one.name);
}

function offer(target, names) {
  close();
  field = target;
  list.replaceChildren(...names.map((name, index) => option(name, index)));
  list.setAttribute("aria-label", field.getAttribute("aria-label"));
  field.after(list);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  mark(0);
  field.addEventListener("keydown", press);
  field.addEventListener("blur", close);
  document.getElementById("said").textContent = names.join(", ");
}

function option(name, index) {
  const one = Object.assign(document.createElement("li"), { id: `person-${index}`, textContent: name });
  one.setAttribute("role", "option");
  one.addEventListener("mousedown", (event) => {
    event.preventDefault();
    take(name);
  });
  return one;
}

function mark(index) {
  options().forEach((one, at) => one.setAttribute("aria-selected", String(at === index)));
  field.setAttribute("aria-activedescendant", `person-${index}`);
}

function close() {
  ++asked;
  list.remove();
  field?.removeEventListener("keydown", press);
  field?.removeEventListener("blur", close);
  for (const name of ["aria-activedescendant", "aria-controls"]) field?.removeAttribute(name);
  field = undefined;
}

function take(name) {
  const into = field;
  const { at } = begun(into);
  into.setRangeText(into.nodeName === "INPUT" ? name : `${name} `, at, into.selectionStart, "end");
  close();
  into.dispatchEvent(new Event("input", { bubbles: true }));
  close();
}

function press(event) {
  const [at, last] = [chosen(), options().length - 1];
  if (event.isComposing) return;
  if (event.key === "ArrowDown") mark(at < last ? at + 1 : 0);
  else if (event.key === "ArrowUp") mark(at > 0 ? at - 1 : last);
  else if (event.key === "Escape") close();
  else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === "Tab") take(options()[at].textContent);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
