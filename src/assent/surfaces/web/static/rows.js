// Long lists: only the rows near the viewport are in the page. One tall row replaces the others.
const NEAR = "2000px 0px";
const away = new WeakMap();

const bodies = (list) => [...(list?.querySelectorAll(".rows tbody") ?? [])];

/** All rows in order, including those outside the page; headings of groups are no rows. */
export const rows = (list) => bodies(list).flatMap((body) => away.get(body) ?? [...body.rows]).filter((row) => row.dataset.id);

/** Appends another page of rows. Its first group may continue the last one. */
export function append(list, more) {
  const heading = bodies(list).flatMap((body) => away.get(body) ?? [...body.rows]).findLast((row) => row.matches(".group"));
  if (heading && more[0]?.textContent === heading.textContent) more.shift();
  const body = document.createElement("tbody");
  body.append(...more);
  list.querySelector(".rows").append(body);
}

/** Replaces a row. */
export function exchange(list, old, row) {
  const out = bodies(list).map((body) => away.get(body)).find((rows) => rows?.includes(old));
  if (out) out[out.indexOf(old)] = row;
  else old.replaceWith(row);
}

/** Puts the row back into the page. */
export function bring(list, row) {
  const body = bodies(list).find((one) => away.get(one)?.includes(row));
  if (body) bringBack(body);
  return row;
}

let watcher;
export function watch(list) {
  watcher?.disconnect();
  watcher = new IntersectionObserver((seen) => seen.forEach(({ target, isIntersecting }) => (isIntersecting ? bringBack(target) : putAway(target))), { root: list, rootMargin: NEAR });
  for (const body of bodies(list)) watcher.observe(body);
}

function bringBack(body) {
  if (!away.has(body)) return;
  body.replaceChildren(...away.get(body));
  away.delete(body);
}

function putAway(body) {
  const height = body.offsetHeight;
  if (away.has(body) || !height || body.contains(document.activeElement)) return;
  away.set(body, [...body.rows]);
  const place = document.createElement("tr");
  place.setAttribute("aria-hidden", "true");
  place.style.height = `${height}px`;
  body.replaceChildren(place);
}

// Selection: all rows, and ranges with Shift.

export function setUpList(list) {
  let last;
  const choose = (row, checked) => {
    const box = row.querySelector("[name=chosen]:enabled");
    if (!box || box.checked === checked) return;
    box.checked = checked;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  };
  list?.addEventListener("click", ({ target, shiftKey }) => {
    if (target.id === "choose-all") rows(list).forEach((row) => choose(row, target.checked));
    if (target.name !== "chosen") return;
    const [all, here] = [rows(list), target.closest("tr")];
    const [from, to] = [all.indexOf(last), all.indexOf(here)].sort((a, b) => a - b);
    if (shiftKey && from >= 0) all.slice(from, to + 1).forEach((row) => choose(row, target.checked));
    last = here;
  });
  list?.addEventListener("reset", () => (document.getElementById("choose-all").checked = false));
  list?.addEventListener("input", ({ target }) => target.type === "search" && suggest(target));
  const inboxes = document.getElementById("inboxes");
  if (!inboxes) return;
  const announce = count(inboxes);
  for (const place of [inboxes, document.querySelector("title")]) new MutationObserver(announce).observe(place, { childList: true, subtree: true, characterData: true });
  announce();
}

/** Completes the last word of the search. The words come with the page. */
function suggest(input) {
  const words = (input.list.words ??= [...input.list.options].map((one) => one.value));
  const [, before, word] = input.value.match(/^(.*?)(\S*)$/s);
  const known = word ? words.filter((one) => one.startsWith(word) && one !== word) : words;
  input.list.replaceChildren(...known.slice(0, 30).map((one) => Object.assign(document.createElement("option"), { value: before + one })));
}

/** Shows the number of pending items in the title and the icon of the tab, and tells screen readers when it changes. */
function count(inboxes) {
  const live = document.getElementById("live");
  const icon = document.querySelector("link[rel=icon]");
  let before;
  return () => {
    const number = inboxes.querySelector(".count")?.textContent ?? "";
    const title = document.title.replace(/^\([\d,]+\+?\) /, "");
    const wanted = number ? `(${number}) ${title}` : title;
    if (document.title !== wanted) document.title = wanted;
    if (number === before) return;
    icon.href = number ? `/inbox/icon.svg?count=${encodeURIComponent(number)}` : icon.dataset.plain ?? icon.href;
    if (before !== undefined) live.textContent = !number ? live.dataset.none : number === "1" ? live.dataset.one : live.dataset.many.replace("{n}", number);
    before = number;
  };
}

/** Items for the command palette, as in the list: those that contain the text. */
export async function search(text) {
  const query = new URLSearchParams({ q: `"${text.replaceAll('"', " ")}" is:pending is:resolved` });
  const response = await fetch(`/inbox?${query}`, { headers: { "Assent-Part": "list" } }).catch(() => null);
  if (!response?.ok) return [];
  const list = new DOMParser().parseFromString(await response.text(), "text/html");
  return [...list.querySelectorAll("td.request")].slice(0, 6).map((cell) => {
    const link = cell.querySelector("a");
    return { address: new URL(link.href).pathname, title: link.textContent, summary: cell.querySelector(".summary")?.textContent ?? "" };
  });
}

// Relative times, in the words of the server.
const UNITS = [31536000, 2592000, 86400, 3600, 60, 1];

export function relative(seconds, smallest = 60) {
  const { ago, in: ahead, units } = document.getElementById("live")?.dataset ?? {};
  const place = UNITS.findIndex((size) => Math.abs(seconds) >= size && size >= smallest);
  if (place < 0 || !units) return "";
  const number = Math.trunc(Math.abs(seconds) / UNITS[place]);
  return (seconds >= 0 ? ago : ahead).replace("{n}", number).replace("{unit}", units.split(" ")[place]);
}
