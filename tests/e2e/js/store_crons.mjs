import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";

import { client, newThread } from "./server.mjs";

test("items are put, read, found, listed and deleted", async () => {
  const own = randomUUID();
  await client.store.putItem([own, "docs"], "first", { title: "One", score: 1 }, { ttl: 5 });
  await client.store.putItem([own, "docs"], "second", { title: "Two", score: 2 }, { index: false });
  assert.deepEqual((await client.store.getItem([own, "docs"], "first")).value, { title: "One", score: 1 });
  assert.equal((await client.store.getItem([own, "docs"], "first", { refreshTtl: false })).key, "first");
  const found = await client.store.searchItems([own], { filter: { score: { $gt: 1 } }, limit: 5 });
  assert.deepEqual(found.items.map((item) => item.key), ["second"]);
  assert.deepEqual((await client.store.listNamespaces({ prefix: [own] })).namespaces, [[own, "docs"]]);
  await client.store.deleteItem([own, "docs"], "first");
  assert.deepEqual((await client.store.searchItems([own])).items.map((item) => item.key), ["second"]);
});

test("crons are made, changed, found, counted and deleted", async () => {
  const mark = { mark: randomUUID() };
  const thread = await newThread();
  const free = await client.crons.create("echo", { schedule: "0 0 1 1 *", timezone: "Europe/Paris", input: { text: "x" }, metadata: mark });
  const bound = await client.crons.createForThread(thread, "echo", { schedule: "@yearly", input: { text: "x" }, metadata: mark });
  assert.deepEqual([free.thread_id, bound.thread_id], [null, thread]);
  const changed = await client.crons.update(free.cron_id, { schedule: "0 12 1 1 *", enabled: false });
  assert.deepEqual([changed.schedule, changed.enabled], ["0 12 1 1 *", false]);
  const found = await client.crons.search({ threadId: thread });
  assert.deepEqual(found.map((cron) => cron.cron_id), [bound.cron_id]);
  assert.ok((await client.crons.count({ threadId: thread })) === 1);
  await client.crons.delete(free.cron_id);
  await client.crons.delete(bound.cron_id);
  assert.deepEqual(await client.crons.search({ threadId: thread }), []);
});
