// Long lists: only the rows near the viewport are in the page. One tall row replaces the others.
const NEAR = "2000px 0px";
const away = new WeakMap();

const bodies = (list) => [...(list?.querySelectorAll(".rows tbody") ?? [])];

/** All rows in order, including those outside the page. */
export const rows = (list) => bodies(list).flatMap((body) => away.get(body) ?? [...body.rows]);

/** Appends another page of rows. */
export function append(list, more) {
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
