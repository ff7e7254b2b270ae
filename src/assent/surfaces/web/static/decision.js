// The decision form and its bar: what will happen, and whether it may happen now. A decision applies only to the item
// that is shown, ready and read; a change to an argument is never dropped without a word.
const detail = document.getElementById("detail");
const find = (selector, within = detail) => within?.querySelector(selector);
const all = (selector, within = detail) => [...(within?.querySelectorAll(selector) ?? [])];
const bar = () => document.getElementById("bar");

export const texts = () => bar()?.dataset ?? {};

// State: `loading` another item, `sending` a form, `settling` just after an item appeared, or ready ("").

/** A key or click that was meant for the previous item must not decide the new one. */
export const SETTLES = 400;
let busy = "";
let focused;
let timer;

/** Blocks the item until `release`. The bar says why. */
export function hold(why) {
  if (!detail) return;
  clearTimeout(timer);
  if (!busy) focused = document.activeElement;
  busy = why;
  detail.inert = true;
  detail.setAttribute("aria-busy", "true");
  say(texts()[why]);
}

/** The same item is usable again. */
export function release() {
  if (!detail) return;
  busy = "";
  detail.inert = false;
  detail.removeAttribute("aria-busy");
  if (focused?.isConnected && detail.contains(focused)) focused.focus({ preventScroll: true });
  weigh();
}

/** An item that the person has not read yet is shown: nothing is decided for a moment. */
export function settle() {
  if (!detail) return;
  focused = null;
  release();
  busy = "settling";
  bar()?.toggleAttribute("inert", true);
  wait();
}

function wait() {
  clearTimeout(timer);
  timer = setTimeout(read, SETTLES);
}

/** Somebody who clicks or types while nothing can be decided has not begun to read: the wait starts again. */
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => busy === "settling" && wait(), true);

/** The second click of a double click is meant for what was in this place before. */
document.addEventListener(
  "click",
  (event) => {
    if (event.detail < 2 || !event.target.closest(":is(#bar, .many, .proposal, .question) button")) return;
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);

/** The person works on this item: it is read. */
export function read() {
  if (busy !== "settling") return;
  clearTimeout(timer);
  busy = "";
  bar()?.toggleAttribute("inert", false);
}

/** Why nothing can be decided now; empty if it can. What only opens something (`opens`) need not wait until it is read. */
export function refusal(opens = false) {
  if (busy && !(opens && busy === "settling")) return texts()[busy] ?? "";
  const row = document.activeElement?.closest("#list tr[data-id]");
  return row && row.dataset.id !== find("[data-item]")?.dataset.item ? texts().elsewhere : "";
}

// Changes

const several = () => all("[data-action]").length > 1;
export const value = (field) => (field.type === "checkbox" ? (field.checked ? "true" : "") : field.value);
const changedIn = (within) => all("[data-edits] [data-shown]", within).filter((field) => value(field) !== field.dataset.shown);
const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0]/gu;
const visible = (text) => text.replace(unseen, (one) => (one === "\n" || one === "\t" ? one : `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`));
const made = (tag, facts) => Object.assign(document.createElement(tag), facts);

function showChanges(section) {
  const changed = changedIn(section);
  for (const field of all("[data-edits] [data-shown]", section)) {
    const label = field.closest(".field");
    const is = changed.includes(field);
    label.classList.toggle("changed", is);
    find(".was", label)?.remove();
    if (is) label.append(pair(field));
  }
  const summary = find("[data-pending]", section);
  if (summary) {
    summary.hidden = !changed.length;
    summary.replaceChildren(made("p", { className: "label", textContent: texts().edits }), ...changed.map((field) => line(field)));
  }
  return changed.length;
}

function pair(field) {
  const was = made("span", { className: "was" });
  was.append(made("del", { textContent: visible(field.dataset.shown) || "∅" }), made("ins", { textContent: visible(value(field)) || "∅" }));
  return was;
}

const nameOf = (field) => find(".name", field.closest(".field")).firstChild.textContent.trim();

function line(field) {
  const row = made("p", {});
  row.append(made("span", { className: "name", textContent: nameOf(field) }), pair(field));
  return row;
}

// The bar

const NEGATIVE = new Set(["reject", "ignore", "decline", "cancel"]);
const filled = (text, facts) => Object.entries(facts).reduce((done, [name, number]) => done.replace(`{${name}}`, number), text ?? "");
const counted = (name, n, facts = {}) => filled(texts()[n === 0 ? name : n === 1 ? `${name}One` : `${name}Many`], { n, ...facts });

/** The verb of each action: chosen, implied by a change, or none yet. `by` is the input that changed. */
function verbs(by) {
  return all("[data-action]").map((section) => {
    const changes = showChanges(section);
    const radios = all("[type=radio]", section);
    let chosen = radios.find((one) => one.checked);
    const edit = radios.find((one) => one.value === "edit");
    if (changes && edit && (!chosen || chosen.value === "approve")) {
      if (by && chosen === by) tell(texts().keep);
      edit.checked = true;
      chosen = edit;
      section.dataset.implied = "yes";
    } else if (!changes && chosen === edit && section.dataset.implied) {
      chosen.checked = false;
      chosen = undefined;
    }
    if (!changes) delete section.dataset.implied;
    if (by && by === edit && edit?.checked) find(".edit", section).open = true;
    const verb = chosen?.value ?? find("input[type=hidden][name$=verb]", section)?.value ?? "";
    section.dataset.verb = verb;
    const reason = find(".reason textarea", section);
    if (reason) reason.disabled = !["reject", "respond"].includes(verb);
    return { changes, verb };
  });
}

/** Counts changes and choices, and has the button and the bar say what they do. */
export function weigh(by) {
  const button = find("[data-primary]");
  const decided = verbs(by);
  const n = decided.reduce((sum, one) => sum + one.changes, 0);
  detail?.classList.toggle("edited", n > 0);
  find("[data-discard]")?.toggleAttribute("hidden", n === 0);
  if (!bar()) return;
  const told = find("[data-says]");
  told.dataset.initial ??= told.textContent;
  showInBar(n);
  if (!button || !["approve", "edit", ""].includes(button.value)) return void (told.textContent = told.dataset.initial);
  button.dataset.first ??= button.firstChild.textContent;
  if (!several()) {
    label(button, counted("approve", n));
    button.value = n || button.dataset.only ? "edit" : "approve";
    told.textContent = n ? `${told.dataset.initial} (${filled(texts().changed, { n })})` : told.dataset.initial;
    return;
  }
  const left = decided.filter((one) => !one.verb).length;
  const sure = find("[name=sure]");
  if (sure) sure.required = left > 0 || decided.some((one) => ["approve", "edit", "accept"].includes(one.verb));
  const refused = decided.some((one) => NEGATIVE.has(one.verb) || one.verb === "respond");
  const shared = button.name === "verb" || button.dataset.shared;
  if (shared) button.dataset.shared = "yes";
  if (shared && !refused && left) {
    label(button, counted("all", n, { all: decided.length }));
    Object.assign(button, { name: "verb", value: n ? "edit" : "approve" });
  } else {
    label(button, left ? filled(texts().choose, { n: left }) : shared || n ? counted("confirm", n) : button.dataset.first);
    Object.assign(button, { name: "", value: "" });
  }
  button.toggleAttribute("data-waits", !button.name && left > 0);
  const runs = button.name ? decided.map((one) => ({ ...one, verb: one.verb || "approve" })) : decided;
  told.textContent = (left < decided.length && summary(runs, button.name ? 0 : left, n)) || told.dataset.initial;
}

/** Below what will happen: the sentence of the call, or what the person changed in it. */
function showInBar(n) {
  const place = find("[data-changes]");
  if (!place) return;
  place.dataset.initial ??= place.textContent;
  place.textContent = n ? changedIn(detail).map(inWords).join(", ") : place.dataset.initial;
}

const inWords = (field) => `${nameOf(field)}: ${brief(field.dataset.shown)} → ${brief(value(field))}`;
const brief = (text) => visible(text.length > 40 ? `${text.slice(0, 40)}…` : text) || "∅";

function summary(decided, left, n) {
  const of = (names) => decided.filter((one) => names.includes(one.verb)).length;
  const [run, reject, answer] = [of(["approve", "edit", "accept"]), of([...NEGATIVE]), of(["respond"])];
  const parts = [run && filled(texts().run, { n: run }) + (n ? ` (${filled(texts().changed, { n })})` : ""), reject && filled(texts().reject, { n: reject }), answer && filled(texts().answer, { n: answer }), left && left < decided.length && filled(texts().left, { n: left })];
  const said = parts.filter(Boolean).join(document.documentElement.lang.startsWith("zh") ? "，" : ", ");
  return said.charAt(0).toUpperCase() + said.slice(1);
}

function label(button, text) {
  const key = find("kbd", button);
  button.replaceChildren(text, ...(key ? [key] : []));
}

function say(text) {
  const told = find("[data-says]");
  if (!told || !text) return;
  told.dataset.initial ??= told.textContent;
  told.textContent = text;
}

/** Back to what the agent asked. */
function discard() {
  for (const field of changedIn(detail)) {
    if (field.type === "checkbox") field.checked = field.dataset.shown === "true";
    else field.value = field.dataset.shown;
  }
  for (const section of all("[data-action]")) {
    const edit = find("[type=radio][value=edit]", section);
    if (edit?.checked) edit.checked = false;
  }
  weigh();
  find("h2").focus({ preventScroll: true }); // a key that is still held must not approve
}

/** Whether the form may be sent now; otherwise says why, and leads to what is missing. */
export function may(form, submitter) {
  const why = refusal();
  if (why) return tell(why);
  if (form.id !== "decision" || !submitter?.matches("[data-primary]")) return true;
  if (submitter.hasAttribute("data-waits")) {
    find("[data-action][data-verb=''] [type=radio]")?.focus();
    return tell(submitter.textContent);
  }
  return true;
}

detail?.addEventListener("click", (event) => {
  if (event.target.closest("[data-discard]")) {
    discard();
    detail.dispatchEvent(new CustomEvent("discarded"));
  }
});
detail?.addEventListener(
  "invalid",
  (event) => {
    if (event.target.name === "sure") tell(texts().unsure);
  },
  true,
);

/** Feedback that moves nothing on the page. */
export function tell(text, mild = true) {
  const alert = made("div", { className: mild ? "told mild" : "told wrong", textContent: text });
  alert.setAttribute("role", "alert");
  const place = document.querySelector(".toasts");
  find("[role=alert]", place)?.remove();
  place?.append(alert);
  return false;
}

/** A key press that did nothing says so. */
export const swallowed = (key, why) => tell(`${filled(texts().swallowed ?? "", { key })} ${why}`.trim());
