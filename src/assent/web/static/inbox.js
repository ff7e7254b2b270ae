// What the pages do better with a script. Everything here works without it: links lead, forms send.
import { setUpKeys } from "./keys.js";
import { follow } from "./live.js";
import { append, bring, exchange, rows, watch } from "./rows.js";

const list = document.getElementById("list");
const detail = document.getElementById("detail");
const find = (selector, within = document) => within?.querySelector(selector);
const all = (selector, within = document) => [...(within?.querySelectorAll(selector) ?? [])];
const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

// Parts of pages

async function fetched(url, part, options = {}) {
  const response = await fetch(url, { ...options, headers: { ...options.headers, "Assent-Part": part } });
  if (response.redirected && new URL(response.url).pathname === "/login") location.assign(response.url);
  return response;
}

/** Puts what a response holds beside the list, and its address into the address bar; says whether it held an item. */
async function show(response, push = true) {
  const html = await response.text();
  const address = new URL(response.headers.get("Assent-Location") ?? response.url, location.href);
  if (!find("[data-item]", parsed(html))) return elsewhere(response, html);
  const before = find("[data-item]", detail)?.dataset.item;
  ++turn;
  clean = true;
  detail.innerHTML = html;
  detail.scrollTop = 0;
  if (push && response.ok) history.pushState(null, "", address.pathname + address.search);
  document.title = `${find("[data-item]", detail).dataset.title} · Assent`;
  mark();
  prepare(detail);
  if (find("[data-item]", detail).dataset.item !== before) {
    changedAt = performance.now();
    find("h2", detail).focus({ preventScroll: true });
  }
  if (address.hash) find(address.hash, detail)?.scrollIntoView();
  return true;
}

/** An answer that is no item: another page to go to, or a failure to tell. Never an address that was only posted to. */
function elsewhere(response, html) {
  if (response.redirected) location.assign(response.url);
  else toast(`${document.getElementById("main").dataset.failed} ${problemIn(html) || response.status}`);
  return false;
}

function problemIn(html) {
  try {
    return JSON.parse(html).detail;
  } catch {
    return find(".notice", parsed(html))?.textContent.trim();
  }
}

/** When another item came into the place of the last: a press meant for that one must not decide this one. */
let changedAt = -Infinity;
const SETTLES = 400;

/** Where the person wants to be: an answer that comes after they have gone on is not shown. */
let turn = 0;

/** What was sent is about to be answered: until then, nobody's news of the same item takes the place of that answer. */
let sending = false;

async function open(url, push = true) {
  keepDraft();
  const mine = ++turn;
  try {
    const response = await fetched(url, "detail");
    if (mine === turn) await show(response, push);
  } catch {
    toast(document.getElementById("main").dataset.unsent);
  }
}

/** The row of what is shown, and only that one, is marked. */
function mark() {
  const shown = find("[data-item]", detail)?.dataset.item;
  for (const row of rows(list)) {
    row.toggleAttribute("aria-current", false);
    if (row.dataset.id !== shown) continue;
    row.setAttribute("aria-current", "true");
    bring(list, row).scrollIntoView({ block: "nearest" });
  }
}

addEventListener("popstate", () => (detail && /^\/inbox\/[0-9a-f-]{36}$/.test(location.pathname) ? open(location.href, false) : location.reload()));

list?.addEventListener("click", (event) => {
  const link = event.target.closest(".request a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !detail || detail.offsetParent === null || list.offsetParent === null) return;
  event.preventDefault();
  open(link.href);
});

detail?.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.target || event.defaultPrevented) return;
  event.preventDefault();
  if (form.action.endsWith("/decision") && performance.now() - changedAt < SETTLES) return;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const buttons = all("button", form).filter((one) => !one.disabled);
  for (const one of buttons) one.disabled = true;
  clearTimeout(saving);
  const mine = ++turn;
  sending = true;
  try {
    if (!form.action.endsWith("/comments")) await sendComment();
    const response = await fetched(form.action, "detail", { method: "POST", body });
    if (mine === turn) await show(response);
  } catch {
    toast(document.getElementById("main").dataset.unsent);
  } finally {
    sending = false;
    for (const one of buttons) one.disabled = false;
    soonRefresh();
  }
});

/** A comment that was typed and not sent goes along with the decision. */
async function sendComment() {
  const field = find("[name=comment]", detail);
  if (field?.value.trim()) await fetched(field.form.action, "detail", { method: "POST", body: new URLSearchParams(new FormData(field.form)) });
}

function toast(text) {
  const said = Object.assign(document.createElement("div"), { className: "told wrong", textContent: text });
  said.setAttribute("role", "alert");
  find(".toasts")?.replaceChildren(said);
}

// The list: rows change in place, what is new waits behind the pill, nothing moves under the cursor.

let waiting = null;
let newest = null;
let refreshing = false;
let again = null;

async function refresh(changed = new Set()) {
  if (!list) return;
  if (refreshing) return void (again = new Set([...(again ?? []), ...changed]));
  refreshing = true;
  try {
    const response = await fetched(`/inbox${here()}`, "list");
    if (response.ok) await merge(parsed(await response.text()), changed);
  } catch {
    // The banner says that there is no connection; the next change tries again.
  } finally {
    refreshing = false;
    if (again) {
      const more = again;
      again = null;
      refresh(more);
    }
  }
}

/** The address of the list beside the item: without what was just done, and from its beginning. */
function here() {
  const query = new URLSearchParams(location.search);
  for (const name of ["done", "cursor"]) query.delete(name);
  return query.size ? `?${query}` : "";
}

async function merge(fresh, changed) {
  for (const part of all("[data-live]", fresh)) {
    const old = document.getElementById(part.id);
    if (old && old.innerHTML !== part.innerHTML) old.innerHTML = part.innerHTML;
  }
  const listed = all("#rows tr", fresh);
  if (!find("#rows", list)) return listed.length ? replaceList(fresh) : undefined;
  const known = new Map(rows(list).map((row) => [row.dataset.id, row]));
  for (const row of listed) if (known.has(row.dataset.id)) put(known.get(row.dataset.id), row.cloneNode(true));
  const there = new Set(listed.map((row) => row.dataset.id));
  await Promise.all([...changed].filter((id) => known.has(id) && !there.has(id)).map((id) => renew(known.get(id))));
  const top = rows(list)[0]?.dataset.asked ?? "";
  const more = listed.filter((row) => !known.has(row.dataset.id) && row.dataset.asked >= top).length;
  newest = fresh;
  tell(more);
}

function put(old, row) {
  const picked = find("input:checked", old);
  const focused = old.contains(document.activeElement);
  row.toggleAttribute("aria-current", old.hasAttribute("aria-current"));
  if (old.getAttribute("aria-current")) row.setAttribute("aria-current", "true");
  if (picked && !find("input", row).disabled) find("input", row).checked = true;
  exchange(list, old, row);
  if (focused) find(".request a", row).focus();
}

/** A row that no longer belongs to this list stays where it is, and says what became of it. */
async function renew(row) {
  const response = await fetched(`/inbox/${row.dataset.id}${here()}`, "row");
  const fresh = response.ok && find("tr", parsed(await response.text()));
  if (fresh) put(row, fresh);
}

function tell(number) {
  const pill = document.getElementById("new");
  if (!pill) return;
  pill.hidden = number === 0;
  pill.textContent = number === 1 ? pill.dataset.one : pill.dataset.many.replace("{n}", number);
}

function replaceList(fresh) {
  const scroll = list.scrollTop;
  list.replaceChildren(...find("#list", fresh).childNodes);
  list.scrollTop = scroll;
  mark();
  restoreChoice();
  watchPages();
}

document.addEventListener("click", (event) => {
  if (event.target.id === "new" && newest) {
    replaceList(newest);
    list.scrollTop = 0;
  }
});

// Older rows come by themselves.
const observer = new IntersectionObserver(async ([entry]) => {
  const link = entry.isIntersecting && find(".pages a[rel=next]", list);
  if (!link) return;
  observer.disconnect();
  const page = parsed(await (await fetched(link.href, "list")).text());
  const known = new Set(rows(list).map((row) => row.dataset.id));
  append(list, all("#rows tr", page).filter((row) => !known.has(row.dataset.id)));
  find(".pages", list).replaceWith(find(".pages", page));
  restoreChoice();
  watchPages();
}, { rootMargin: "400px" });

function watchPages() {
  observer.disconnect();
  const pages = find(".pages", list);
  if (pages) observer.observe(pages);
  if (list) watch(list);
}
watchPages();

// What is chosen for bulk outlives the page it was chosen on.
const CHOSEN = "assent-chosen";
const chosen = new Set(JSON.parse(sessionStorage.getItem(CHOSEN) ?? "[]"));

function keepChoice() {
  sessionStorage.setItem(CHOSEN, JSON.stringify([...chosen]));
  const said = find("[data-chosen]", list);
  list.classList.toggle("choosing", chosen.size > 0);
  if (said) said.textContent = said.dataset.chosen.replace("{n}", chosen.size);
}

function restoreChoice() {
  for (const box of all("[name=chosen]", list)) box.checked = chosen.has(box.value) && !box.disabled;
  keepChoice();
}

list?.addEventListener("change", (event) => {
  if (event.target.name !== "chosen") return;
  chosen[event.target.checked ? "add" : "delete"](event.target.value);
  keepChoice();
});
list?.addEventListener("reset", () => {
  chosen.clear();
  setTimeout(restoreChoice);
});
list?.addEventListener("submit", (event) => {
  if (event.target.id !== "bulk") return;
  const there = new Set(all("[name=chosen]:checked", list).map((box) => box.value));
  for (const value of chosen) {
    if (there.has(value)) continue;
    event.target.append(Object.assign(document.createElement("input"), { type: "hidden", name: "chosen", value }));
  }
});
if (list) restoreChoice();
if (find("[data-decided]")) sessionStorage.removeItem(CHOSEN);

// Edits: what stands in a field against what stood there at first, old beside new, and a draft of it.

let clean = true;
let saving;
const value = (field) => (field.type === "checkbox" ? (field.checked ? "true" : "") : field.value);
const changedIn = (form) => all("[data-shown]", form).filter((field) => value(field) !== field.dataset.shown);
const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0]/gu;
const visible = (text) => text.replace(unseen, (one) => (one === "\n" || one === "\t" ? one : `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`));

function count(form) {
  const changed = new Set(changedIn(form));
  for (const field of all("[data-shown]", form)) {
    const label = field.closest(".field");
    label.classList.toggle("changed", changed.has(field));
    find(".was", label)?.remove();
    if (changed.has(field)) label.append(was(field.dataset.shown));
  }
  const button = find("[data-counts]", form);
  if (!button) return;
  const { none, one, many } = button.dataset;
  button.textContent = changed.size === 0 ? none : changed.size === 1 ? one : many.replace("{n}", changed.size);
}

function was(text) {
  const line = Object.assign(document.createElement("span"), { className: "was" });
  line.append(Object.assign(document.createElement("del"), { textContent: visible(text) || "∅" }));
  return line;
}

function typedIn(article) {
  const fields = all("textarea, select, input:not([type=hidden], [type=password])", article);
  const told = fields.filter((field) => field.name && field.name !== "sure" && (field.type === "radio" ? field.checked : value(field) !== (field.dataset.shown ?? "")));
  return Object.fromEntries(told.map((field) => [field.name, value(field)]));
}

async function saveDraft() {
  const article = find("[data-item]", detail);
  if (!article) return;
  const { item, hash } = article.dataset;
  const typed = typedIn(article);
  const draft = Object.keys(typed).length ? { hash, typed } : null;
  const json = { "content-type": "application/json" };
  try {
    const saved = await fetch(`/api/inbox/items/${item}/draft`, { method: "PUT", headers: json, body: JSON.stringify({ draft }) });
    clean = clean || saved.ok;
    if (draft) await fetch(`/api/inbox/items/${item}/claim`, { method: "PUT", headers: json });
  } catch {
    clean = false;
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form");
  if (form?.querySelector("[data-edits]")) count(form);
  if (!event.target.closest("[data-item]") || event.target.type === "password") return;
  clean = false;
  changedAt = -Infinity;
  clearTimeout(saving);
  saving = setTimeout(saveDraft, 500);
});

function keepDraft() {
  if (clean) return;
  clearTimeout(saving);
  saveDraft();
}
// The browser asks before what was typed, and is not yet kept as a draft, gets lost.
addEventListener("beforeunload", (event) => {
  if (!clean) event.preventDefault();
});

// Time goes on.

function prepare(within) {
  for (const form of all("form:has([data-edits])", within)) count(form);
  for (const form of all("form[data-until]", within)) {
    setTimeout(() => {
      form.parentElement.querySelector(":scope > p .quiet")?.remove();
      form.remove();
    }, Math.max(0, Date.parse(form.dataset.until) - Date.now()));
  }
  tick();
}

const format = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "always", style: "narrow" });
const units = [[31536000, "year"], [2592000, "month"], [86400, "day"], [3600, "hour"], [60, "minute"]];
function tick() {
  for (const time of all("time")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const [size, unit] = units.find(([one]) => Math.abs(seconds) >= one) ?? [];
    if (unit) time.textContent = format.format(-Math.trunc(seconds / size), unit);
  }
}
setInterval(tick, 30_000);

// What others do meanwhile.

let since = new Set();
let soon;
let touched = new Set();
function noticed({ kind, item }) {
  since.add(item.id);
  if (!["item.claimed", "item.unclaimed", "item.commented"].includes(kind)) touched.add(item.id);
  soonRefresh();
}

/** A moment later, so that what a person waits for comes first, and a burst of changes costs one look. */
function soonRefresh() {
  clearTimeout(soon);
  soon = setTimeout(() => {
    const [changed, asked] = [since, touched];
    since = new Set();
    touched = new Set();
    refresh(changed);
    renewDetail(changed, asked);
  }, 150);
}

/** Shows it as it is now; where a person is at work, only what they are asked about is worth a word. */
function renewDetail(changed, asked) {
  const article = find("[data-item]", detail);
  if (!article || !changed.has(article.dataset.item)) return;
  if (sending) return void since.add(article.dataset.item);
  const busy = Object.keys(typedIn(article)).length || find("[popover]:popover-open", detail) || detail.contains(document.activeElement?.closest("textarea, input, select") ?? null);
  if (!busy) return reload();
  if (!asked.has(article.dataset.item) || find(".stale", article)) return;
  const notice = Object.assign(document.createElement("div"), { className: "notice mild stale" });
  notice.setAttribute("role", "status");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: article.dataset.again });
  button.addEventListener("click", reload);
  notice.append(Object.assign(document.createElement("p"), { textContent: article.dataset.changed }), button);
  find(".head", article).after(notice);
}

async function reload() {
  const scroll = detail.scrollTop;
  const told = find(".toasts", detail)?.firstElementChild;
  const mine = turn;
  const response = await fetched(location.pathname + here(), "detail");
  if (!response.ok || mine !== turn) return;
  await show(response, false);
  if (told) find(".toasts", detail)?.replaceChildren(told);
  detail.scrollTop = scroll;
}

// Who else is looking; and that this person does.
setInterval(async () => {
  const shown = find("[data-item]", detail)?.dataset.item;
  if (!shown || document.hidden) return;
  const response = await fetch(`/inbox/${shown}/presence`).catch(() => null);
  const place = document.getElementById("presence");
  if (response?.ok && place && find("[data-item]", detail)?.dataset.item === shown) place.innerHTML = await response.text();
}, 15_000);

function connection({ lost }) {
  let banner = find(".offline");
  if (!lost) {
    banner?.remove();
    return banner && refresh(new Set(rows(list).map((row) => row.dataset.id))).then(() => renewDetail(new Set([find("[data-item]", detail)?.dataset.item]), new Set()));
  }
  const text = document.getElementById("main").dataset.offline;
  const seconds = Math.max(1, Math.trunc((Date.now() - lost) / 1000));
  const age = seconds < 60 ? format.format(-seconds, "second") : format.format(-Math.trunc(seconds / 60), "minute");
  banner ??= document.getElementById("main").insertAdjacentElement("beforebegin", Object.assign(document.createElement("p"), { className: "offline" }));
  banner.setAttribute("role", "status");
  banner.textContent = text.replace("{age}", age);
}

// Forms that are pages become dialogs.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-dialog]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const form = find("#main", parsed(await (await fetch(link.href)).text()));
  if (!form) return location.assign(link.href);
  const dialog = document.createElement("dialog");
  dialog.append(...form.childNodes);
  const title = find("h1, h2", dialog);
  if (title) dialog.setAttribute("aria-labelledby", (title.id ||= "dialog-title"));
  dialog.addEventListener("click", (one) => {
    if (!one.target.closest("a[href]") || one.target.closest("form button")) return;
    one.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
});

setUpKeys({ open: (link) => (detail && list?.offsetParent ? open(link.href) : link.click()), toggle: (box) => box.click() });
prepare(document);
mark();
const kinds = find("#main")?.dataset.kinds;
if (kinds) follow(kinds.split(" "), noticed, connection);
