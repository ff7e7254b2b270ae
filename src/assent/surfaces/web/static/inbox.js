// Progressive enhancement: every page also works without this script, with plain links and forms.
import { hold, may, read, release, settle, tell, texts, value, weigh } from "./decision.js";
import { setUpKeys } from "./keys.js";
import { follow } from "./live.js";
import { append, bring, exchange, relative, rows, setUpList, watch } from "./rows.js";

const list = document.getElementById("list");
const detail = document.getElementById("detail");
const find = (selector, within = document) => within?.querySelector(selector);
const all = (selector, within = document) => [...(within?.querySelectorAll(selector) ?? [])];
const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

// Parts of pages

async function fetched(url, part, options = {}) {
  const response = await fetch(url, { ...options, headers: { ...options.headers, "Assent-Part": part } });
  if (!signedOut(response)) return response;
  await signIn();
  return fetched(url, part, options);
}

const signedOut = (response) => response.status === 401 || (response.redirected && new URL(response.url).pathname === "/login");

let signing;

/** Signs in again over the page, which stays as it is. Resolves once the session is there. */
function signIn() {
  signing ??= new Promise((resolve) => {
    keepLocally();
    fetch("/login").then(async (response) => {
      const dialog = Object.assign(document.createElement("dialog"), { className: "narrow" });
      dialog.append(...find("main", parsed(await response.text())).childNodes, Object.assign(document.createElement("p"), { textContent: texts().signedOut ?? "" }));
      dialog.setAttribute("aria-label", texts().resume ?? "");
      const form = find("form", dialog);
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        const sent = await fetch("/login", { method: "POST", body: new URLSearchParams(new FormData(form)) });
        if (!sent.ok || new URL(sent.url).pathname === "/login") return form.before(find(".notice", parsed(await sent.text())) ?? "");
        dialog.close();
        dialog.remove();
        signing = undefined;
        resolve();
      });
      dialog.addEventListener("cancel", (event) => event.preventDefault());
      document.body.append(dialog);
      dialog.showModal();
    });
  });
  return signing;
}

/** Shows the response beside the list and updates the address bar. Returns whether it contained an item. */
async function show(response, push = true) {
  const html = await response.text();
  const address = new URL(response.headers.get("Assent-Location") ?? response.url, location.href);
  const page = parsed(html);
  if (!find("[data-item]", page)) return elsewhere(response, html);
  const before = find("[data-item]", detail)?.dataset;
  const [item, hash, status] = [before?.item, before?.hash, before?.status];
  ++turn;
  clean = true;
  detail.replaceChildren(...page.body.childNodes);
  detail.scrollTop = 0;
  if (push && response.ok) history.pushState(null, "", address.pathname + address.search);
  const now = find("[data-item]", detail).dataset;
  document.title = `${now.title} · Assent`;
  mark();
  prepare(detail);
  report(detail);
  if (now.item !== item || now.hash !== hash || now.status !== status) settle();
  else release();
  if (now.item !== item) find("h2", detail).focus({ preventScroll: true });
  if (address.hash) find(address.hash, detail)?.scrollIntoView();
  return true;
}

/** Tells screen readers what was just done. The region is always in the page: a region that appears is not read. */
function report(within) {
  const told = find(".toasts .told:not([role]) p", within)?.textContent.trim();
  if (told) document.getElementById("said").textContent = told;
}

/** A response without an item: follows a redirect or shows the error. Never navigates to a POST-only URL. */
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

/** Navigation counter: responses for an earlier navigation are discarded. */
let turn = 0;

/** A form is being sent: live updates of the item wait for its response. */
let sending = false;

async function open(url, push = true) {
  keepDraft();
  const mine = ++turn;
  hold("loading");
  try {
    const response = await fetched(url, "detail");
    if (mine === turn && !(await show(response, push))) release();
  } catch {
    if (mine === turn) release();
    toast(document.getElementById("main").dataset.unsent);
  }
}

/** Marks the row of the open item. */
function mark() {
  const shown = find("[data-item]", detail)?.dataset.item;
  for (const row of rows(list)) {
    row.toggleAttribute("aria-current", false);
    if (row.dataset.id !== shown) continue;
    row.setAttribute("aria-current", "true");
    bring(list, row).scrollIntoView({ block: "nearest" });
  }
}

const shows = (path) => find("[data-item]", detail)?.dataset.item === path.split("/").at(-1);
addEventListener("popstate", () => (location.hash && shows(location.pathname) ? null : detail && /^\/inbox\/[0-9a-f-]{36}$/.test(location.pathname) ? open(location.href, false) : location.reload()));

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
  const decides = /\/(decision|revision-request|in-doubt)$/.test(form.action);
  if (decides && !may(form, event.submitter)) return;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  clearTimeout(saving);
  const mine = ++turn;
  sending = true;
  hold("sending");
  try {
    if (!(await confirmed(form, body, event.submitter))) return;
    if (!form.action.endsWith("/comments")) await sendComment();
    const response = await fetched(form.action, "detail", { method: "POST", body });
    if (response.ok && decides) forgetLocally();
    if (mine === turn) await show(response);
  } catch {
    toast(document.getElementById("main").dataset.unsent);
  } finally {
    sending = false;
    if (detail.inert && mine === turn) release();
    soonRefresh();
  }
});

/** Confirms the form with a passkey if required; false if the confirmation failed. */
async function confirmed(form, body, submitter) {
  const { confirm, unconfirmed } = find("[data-item]", detail).dataset;
  const asks = form.action.endsWith("/in-doubt") ? confirm : form.action.endsWith("/decision") && (confirm || submitter?.value === "edit" || (form.id === "decision" && all("[data-action]", detail).length > 1));
  if (!asks) return true;
  const response = await fetched(`${form.action}/confirmation`, "detail", { method: "POST", body });
  if (response.status === 204) return true;
  if (!response.headers.get("content-type")?.startsWith("application/json")) return void (await show(response, false));
  const { prove } = await import("./passkeys.js");
  try {
    body.set("assertion", JSON.stringify(await prove(await response.json())));
    return true;
  } catch {
    return toast(unconfirmed);
  }
}

/** Sends an unsent comment along with the decision. */
async function sendComment() {
  const field = find("[name=comment]", detail);
  if (field?.value.trim()) await fetched(field.form.action, "detail", { method: "POST", body: new URLSearchParams(new FormData(field.form)) });
}

const toast = (text) => tell(text, false);

// The list: rows change in place, new rows wait behind the pill, nothing moves under the cursor.

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
    // The banner shows that the connection is lost; the next change retries.
  } finally {
    refreshing = false;
    if (again) {
      const more = again;
      again = null;
      refresh(more);
    }
  }
}

/** The query of the list: from its start, without `done`. */
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
  const top = rows(list).reduce((newest, row) => (row.dataset.asked > newest ? row.dataset.asked : newest), "");
  const more = listed.filter((row) => !known.has(row.dataset.id) && row.dataset.asked >= top).length;
  newest = fresh;
  offerNew(more);
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

/** A row that left this list stays in place and shows its new state. */
async function renew(row) {
  const response = await fetched(`/inbox/${row.dataset.id}${here()}`, "row");
  const fresh = response.ok && find("tr", parsed(await response.text()));
  if (fresh) put(row, fresh);
}

function offerNew(number) {
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

// Infinite scroll, with a retry after failures.
const RETRY_MS = 2000;
const observer = new IntersectionObserver(async (entries) => {
  const link = entries.at(-1).isIntersecting && find(".pages a[rel=next]", list);
  if (!link) return;
  observer.disconnect();
  try {
    const response = await fetched(link.href, "list");
    if (!response.ok) throw new Error(response.statusText);
    showOlder(parsed(await response.text()));
    watchPages();
  } catch {
    setTimeout(watchPages, RETRY_MS);
  }
}, { rootMargin: "400px" });

function showOlder(page) {
  const known = new Set(rows(list).map((row) => row.dataset.id));
  append(list, all("#rows tr", page).filter((row) => !known.has(row.dataset.id)));
  find(".pages", list).replaceWith(find(".pages", page));
  restoreChoice();
}

function watchPages() {
  observer.disconnect();
  const pages = find(".pages", list);
  if (pages) observer.observe(pages);
  if (list) watch(list);
}
watchPages();

// The bulk selection survives navigation.
const CHOSEN = "assent-chosen";
const chosen = new Set(JSON.parse(sessionStorage.getItem(CHOSEN) ?? "[]"));

function keepChoice() {
  sessionStorage.setItem(CHOSEN, JSON.stringify([...chosen]));
  const label = find("[data-chosen]", list);
  list.classList.toggle("choosing", chosen.size > 0);
  if (label) label.textContent = label.dataset.chosen.replace("{n}", chosen.size);
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
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  body.delete("chosen");
  for (const value of chosen) body.append("chosen", value);
  decideMany(event.target.action, body);
});
if (list) restoreChoice();
if (find("[data-decided]")) sessionStorage.removeItem(CHOSEN);

/** The preview, the decisions and their undo happen in a dialog: the page and its history stay as they are. */
async function decideMany(url, body, dialog) {
  try {
    const response = await fetched(url, "bulk", { method: "POST", body });
    const main = find("#main", parsed(await response.text()));
    if (!main) return toast(`${document.getElementById("main").dataset.failed} ${response.status}`);
    dialog ??= bulkDialog();
    dialog.replaceChildren(...main.childNodes);
    dialog.setAttribute("aria-labelledby", (find("h2", dialog).id = "bulk-title"));
    find("h2", dialog).tabIndex = -1;
    find("h2", dialog).focus();
    if (main.hasAttribute("data-decided")) {
      chosen.clear();
      restoreChoice();
      refresh(new Set(rows(list).map((row) => row.dataset.id)));
    }
    prepare(dialog);
  } catch {
    toast(document.getElementById("main").dataset.unsent);
  }
}

function bulkDialog() {
  const dialog = Object.assign(document.createElement("dialog"), { className: "many" });
  dialog.addEventListener("submit", (event) => {
    event.preventDefault();
    const buttons = all("button", dialog);
    for (const one of buttons) one.disabled = true;
    decideMany(event.target.action, new URLSearchParams(new FormData(event.target, event.submitter)), dialog);
  });
  dialog.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || !link.matches("[data-back]")) return;
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Edits: changed fields show their old value, and input is saved as a draft.

let clean = true;
let saving;

function typedIn(article) {
  const fields = all("textarea, select, input:not([type=hidden], [type=password])", detail);
  const changed = fields.filter((field) => field.name && field.name !== "sure" && (field.type === "radio" ? field.checked : value(field) !== (field.dataset.shown ?? "")));
  return Object.fromEntries(changed.map((field) => [field.name, value(field)]));
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
    // A development server takes a request without a session for that of an agent, which may not do this.
    if (signedOut(saved) || (saved.status === 403 && signedOut(await fetch(`/inbox/${item}/presence`)))) return offerSignIn();
    clean = clean || saved.ok;
    if (saved.ok) forgetLocally();
    if (draft) await fetch(`/api/inbox/items/${item}/claim`, { method: "PUT", headers: json });
  } catch {
    clean = false;
  }
}

/** Says that the session is over; typing goes on, and nothing is lost. */
function offerSignIn() {
  keepLocally();
  tell(texts().signedOut);
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: texts().signIn });
  button.addEventListener("click", async () => {
    await signIn();
    find(".toasts").replaceChildren();
    saveDraft();
  });
  find(".toasts > [role=alert]")?.append(" ", button);
}

// What the server does not have yet is kept in this browser, for the same person and revision.

const localKey = ({ caller, item }) => `assent-draft ${caller} ${item}`;

function keepLocally() {
  const article = find("[data-item]", detail);
  const typed = article ? typedIn(article) : {};
  if (Object.keys(typed).length) localStorage.setItem(localKey(article.dataset), JSON.stringify({ hash: article.dataset.hash, typed }));
}

function forgetLocally() {
  const article = find("[data-item]", detail);
  if (article) localStorage.removeItem(localKey(article.dataset));
}

function restoreLocally() {
  const article = find("[data-item]", detail);
  const kept = article && JSON.parse(localStorage.getItem(localKey(article.dataset)) ?? "null");
  if (!kept || kept.hash !== article.dataset.hash) return;
  for (const [name, text] of Object.entries(kept.typed)) {
    const fields = all(`[name="${CSS.escape(name)}"]`, detail);
    const field = fields.find((one) => one.type !== "radio" || one.value === text);
    if (!field) continue;
    if (["checkbox", "radio"].includes(field.type)) field.checked = field.type === "radio" || text === "true";
    else field.value = text;
    field.closest("details")?.toggleAttribute("open", true);
  }
  weigh();
  clean = false;
  saving = setTimeout(saveDraft, 500);
}

// Until the server has dropped the draft, an update of the page would bring it back.
detail?.addEventListener("discarded", () => {
  forgetLocally();
  clearTimeout(saving);
  clean = false;
  ++turn;
  saving = setTimeout(() => saveDraft().then(soonRefresh), 0);
});

document.addEventListener("input", (event) => {
  if (!detail?.contains(event.target) || event.target.type === "password") return;
  if (event.target.name === "sure") return;
  if (event.target.matches("[data-shown], [type=radio]")) weigh(event.target.type === "radio" ? event.target : undefined);
  clean = false;
  read();
  keepLocally();
  clearTimeout(saving);
  saving = setTimeout(saveDraft, 500);
});

// Names and saved reasons for the field that somebody writes in.

document.addEventListener("input", async ({ target }) => {
  if (target.matches("[data-people]")) (await import("./people.js")).complete(target);
});
document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-fill]") || !target.value) return;
  const field = find("textarea", target.form);
  field.value = [field.value.trim(), target.value].filter(Boolean).join("\n");
  target.value = "";
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

function keepDraft() {
  if (clean) return;
  clearTimeout(saving);
  saveDraft();
}
// The browser warns before unsaved input is lost.
addEventListener("beforeunload", (event) => {
  if (!clean) event.preventDefault();
});

// Relative times.

function prepare(within) {
  weigh();
  restoreLocally();
  readContext();
  for (const form of all("form[data-until]", within)) {
    setTimeout(() => {
      find(".quiet, small", form.parentElement.closest(".told, .bar"))?.remove();
      form.remove();
    }, Math.max(0, Date.parse(form.dataset.until) - Date.now()));
  }
  tick();
}

/** Contexts of items of other deployments, by item and revision: each is read once, after its page is shown. */
const contexts = new Map();

async function readContext() {
  const place = find("[data-context]", detail);
  if (!place) return;
  const { item, hash } = find("[data-item]", detail).dataset;
  const key = `${item} ${hash}`;
  if (!contexts.has(key)) {
    place.setAttribute("aria-busy", "true");
    const response = await fetch(`/inbox/${item}/context`).catch(() => null);
    place.removeAttribute("aria-busy");
    if (!response?.ok) return;
    const html = await response.text();
    if (!find(".unread", parsed(html))) contexts.set(key, html);
    else if (place.isConnected) place.innerHTML = html;
  }
  if (place.isConnected && contexts.has(key)) place.innerHTML = contexts.get(key);
}

function tick() {
  for (const time of all("time")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const { now, soon } = document.getElementById("live")?.dataset ?? {};
    const near = seconds >= 0 || time.textContent === now ? now : soon; // the clocks may differ by seconds
    time.textContent = relative(seconds) || (near ?? time.textContent);
  }
}
setInterval(tick, 30_000);

// Live updates.

let since = new Set();
let soon;
let latest = new Map();
function noticed({ item }) {
  since.add(item.id);
  latest.set(item.id, item);
  soonRefresh();
}

/** Debounced, so that a person's own request comes first and a burst of changes costs one refresh. */
function soonRefresh() {
  clearTimeout(soon);
  soon = setTimeout(() => {
    const [changed, asked] = [since, latest];
    since = new Set();
    latest = new Map();
    refresh(changed);
    renewDetail(changed, asked);
  }, 150);
}

/** Whether the person types, chooses or has a dialog open. */
const occupied = (article) => Object.keys(typedIn(article)).length || find("[popover]:popover-open", detail) || detail.contains(document.activeElement?.closest("textarea, input, select") ?? null);

/** Reloads the item; while the person is editing, only shows a notice if the request itself changed. */
function renewDetail(changed, asked) {
  const article = find("[data-item]", detail);
  if (!article || !changed.has(article.dataset.item)) return;
  if (sending) return void since.add(article.dataset.item);
  if (!occupied(article)) return clean ? reload() : void since.add(article.dataset.item);
  const { hash, status } = asked.get(article.dataset.item) ?? article.dataset;
  if ((hash === article.dataset.hash && status === article.dataset.status) || find(".stale", article)) return;
  const notice = Object.assign(document.createElement("div"), { className: "notice mild stale" });
  notice.setAttribute("role", "status");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: article.dataset.again });
  button.addEventListener("click", () => reload(false));
  notice.append(Object.assign(document.createElement("p"), { textContent: article.dataset.changed }), button);
  find(".head", article).after(notice);
}

async function reload(quietly = true) {
  const scroll = detail.scrollTop;
  const told = find(".toasts", detail)?.firstElementChild;
  const unfolded = all("details[open]", detail).map((one) => one.className);
  const mine = turn;
  const response = await fetched(location.pathname + here(), "detail");
  if (!response.ok || mine !== turn) return;
  const article = find("[data-item]", detail);
  if (quietly && occupied(article)) return void since.add(article.dataset.item); // begun meanwhile
  await show(response, false);
  if (told) find(".toasts", detail)?.replaceChildren(told);
  for (const one of all("details", detail)) if (unfolded.includes(one.className)) one.open = true;
  detail.scrollTop = scroll;
}

// Presence: reports this viewer and shows the others.
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
    return banner && refresh(new Set(rows(list).map((row) => row.dataset.id))).then(() => renewDetail(new Set([find("[data-item]", detail)?.dataset.item]), new Map()));
  }
  const text = document.getElementById("main").dataset.offline;
  const seconds = Math.max(1, Math.trunc((Date.now() - lost) / 1000));
  const age = relative(seconds, 1);
  banner ??= document.getElementById("main").insertAdjacentElement("beforebegin", Object.assign(document.createElement("p"), { className: "offline" }));
  banner.setAttribute("role", "status");
  banner.textContent = text.replace("{age}", age);
}

// Form pages open as dialogs.
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

// Installed as an app, or offline: the worker has the scripts and styles, and never data.
addEventListener("load", () => navigator.serviceWorker?.register(document.getElementById("said").dataset.worker, { scope: "/inbox" }).catch(() => {}));

setUpKeys({ open: (link) => (detail && list?.offsetParent ? open(link.href) : link.click()), toggle: (box) => box.click() });
setUpList(list);
prepare(document);
setTimeout(report);
if (find("[data-item]", detail)) settle();
mark();
const { kinds, after } = find("#main")?.dataset ?? {};
if (kinds) follow(kinds.split(" "), Number(after), noticed, connection);
