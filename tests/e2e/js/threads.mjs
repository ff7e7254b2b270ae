import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";

import { client, newThread, until } from "./server.mjs";

test("a thread is made, read, changed, counted and removed", async () => {
  const mark = randomUUID();
  const made = await client.threads.create({ metadata: { mark }, graphId: "echo", ttl: 60 });
  assert.equal((await client.threads.get(made.thread_id)).status, "idle");
  await client.threads.update(made.thread_id, { metadata: { more: "yes" } });
  assert.deepEqual((await client.threads.search({ metadata: { mark } }))[0].metadata, { mark, graph_id: "echo", more: "yes" });
  assert.equal(await client.threads.count({ metadata: { mark } }), 1);
  await client.threads.delete(made.thread_id);
  await assert.rejects(client.threads.get(made.thread_id), (error) => error.status === 404);
});

test("a thread that exists may be asked for again", async () => {
  const threadId = await newThread();
  assert.equal((await client.threads.create({ threadId, ifExists: "do_nothing" })).thread_id, threadId);
  await assert.rejects(client.threads.create({ threadId, ifExists: "raise" }), (error) => error.status === 409);
});

test("a thread is made with a past", async () => {
  const supersteps = [{ updates: [{ values: { text: "before" }, asNode: "__start__" }] }];
  const made = await client.threads.create({ graphId: "echo", supersteps });
  assert.deepEqual((await client.threads.getState(made.thread_id)).values, { text: "before" });
});

test("a search sorts, pages and picks fields", async () => {
  const mark = randomUUID();
  for (const n of [1, 2, 3]) await client.threads.create({ metadata: { mark, n } });
  const query = { metadata: { mark }, sortBy: "created_at", sortOrder: "asc", select: ["thread_id", "metadata"] };
  const found = await client.threads.search({ ...query, limit: 2, offset: 1 });
  assert.deepEqual(found.map((one) => one.metadata.n), [2, 3]);
  assert.deepEqual(Object.keys(found[0]).sort(), ["metadata", "thread_id"]);
});

test("state, history, and an edit", async () => {
  const thread = await newThread();
  await client.runs.wait(thread, "slow", { input: { text: "x" } });
  const state = await client.threads.getState(thread);
  assert.deepEqual(state.values.log, ["x:a", "x:b", "x:c"]);
  const past = await client.threads.getHistory(thread, { limit: 3 });
  assert.deepEqual(past.map((one) => one.next), [[], ["c"], ["b"]]);
  const earlier = await client.threads.getState(thread, past[2].checkpoint);
  assert.deepEqual(earlier.values.log, ["x:a"]);
  assert.deepEqual((await client.threads.getState(thread, past[2].checkpoint.checkpoint_id)).next, ["b"]);
  const before = await client.threads.getHistory(thread, { limit: 1, before: { configurable: past[1].checkpoint } });
  assert.deepEqual(before.map((one) => one.next), [["b"]]);
  const changed = await client.threads.updateState(thread, { values: { log: ["by hand"] }, asNode: "b" });
  assert.ok(changed.configurable.checkpoint_id ?? changed.checkpoint_id);
  assert.deepEqual((await client.threads.getState(thread)).next, ["c"]);
});

test("a fork goes on from an earlier checkpoint", async () => {
  const thread = await newThread();
  await client.runs.wait(thread, "slow", { input: { text: "x" } });
  const [, , atB] = await client.threads.getHistory(thread, { limit: 3 });
  const forked = await client.runs.wait(thread, "slow", { input: null, checkpointId: atB.checkpoint.checkpoint_id });
  assert.deepEqual(forked.log, ["x:a", "x:b", "x:c"]);
});

test("a copy has the state, and the question", async () => {
  const thread = await newThread();
  await client.runs.wait(thread, "hitl", { input: { text: "x" } });
  const copy = await client.threads.copy(thread);
  const found = await client.threads.get(copy.thread_id);
  assert.equal(found.status, "interrupted");
  assert.equal(Object.values(found.interrupts).flat().length, 1);
});

test("someone who follows a thread sees its runs and its edits", async () => {
  const thread = await newThread();
  await client.runs.wait(thread, "echo", { input: { text: "before" } });
  const stop = new AbortController();
  const seen = [];
  const following = (async () => {
    const options = { streamMode: ["run_modes", "state_update"], signal: stop.signal };
    for await (const part of client.threads.joinStream(thread, options)) seen.push(part);
  })().catch((error) => assert.ok(stop.signal.aborted, error));
  await until(async () => {
    await client.runs.wait(thread, "echo", { input: { text: "now" } });
    return seen.some((part) => part.event === "metadata" && part.data.status === "run_done");
  });
  assert.ok(seen.some((part) => part.event === "values" && part.data.reply === "now"));
  await client.threads.updateState(thread, { values: { text: "by hand" } });
  const edit = await until(() => seen.find((part) => part.event === "state_update"));
  assert.equal(edit.data.state.values.text, "by hand");
  stop.abort();
  await following;
});
