// The service worker: keeps the scripts, styles and icons of this release, and shows a page of its own while the server
// cannot be reached. It never keeps items, decisions or any other answer of the server.
const query = new URL(location.href).searchParams;
const [build, look] = [query.get("build"), query.get("look")];
const CACHE = `assent-${build}-${look}`;
const OFFLINE = "/inbox/offline";
const STATIC = `/static/${build}/`;

self.addEventListener("install", (event) => event.waitUntil(keep().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(begin()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith(STATIC)) event.respondWith(asset(request));
  else if (request.mode === "navigate") event.respondWith(page(event));
});

async function keep() {
  const response = await fetch(OFFLINE);
  if (!response.ok || response.redirected) throw new Error("no offline page");
  const cache = await caches.open(CACHE);
  await cache.put(OFFLINE, response);
  await cache.addAll([`${STATIC}assent.css`, `${STATIC}icon.svg`]);
}

/** Drops what earlier releases kept. Navigations start while the worker does, so that it costs no time. */
async function begin() {
  await self.registration.navigationPreload?.enable();
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("assent-") && name !== CACHE).map((name) => caches.delete(name)));
}

async function asset(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}

async function page(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return (await (await caches.open(CACHE)).match(OFFLINE)) ?? Response.error();
  }
}
