import assert from "node:assert/strict";
import test from "node:test";

import { Client, client, collected, Gates, newThread, until, url } from "./server.mjs";

const modes = ["values", "updates", "messages-tuple", "custom", "debug", "tasks", "checkpoints", "events"];

test("a background run is joined", async () => {
  const thread = await newThread();
  let told;
  const run = await client.runs.create(thread, "echo", { input: { text: "x" }, onRunCreated: (made) => (told = made) });
  assert.equal(run.status, "pending");
  assert.deepEqual(told, { run_id: run.run_id, thread_id: thread });
  assert.deepEqual(await client.runs.join(thread, run.run_id), { text: "x", reply: "x" });
  assert.equal((await client.runs.get(thread, run.run_id)).status, "success");
  assert.deepEqual((await client.runs.list(thread, { status: "success" })).map((one) => one.run_id), [run.run_id]);
});

test("a stream has its modes, and tells of the run", async () => {
  const thread = await newThread();
  let told;
  const input = { messages: [{ role: "user", content: "hi" }] };
  const options = { input, streamMode: modes, streamSubgraphs: true, onRunCreated: (made) => (told = made) };
  const parts = await collected(client.runs.stream(thread, "streams", options));
  assert.deepEqual(parts[0], { event: "metadata", data: { run_id: told.run_id, attempt: 1 }, id: undefined });
  const kinds = new Set(parts.map((part) => part.event.split("|")[0]));
  assert.deepEqual([...kinds].sort(), ["checkpoints", "custom", "debug", "events", "messages", "metadata", "tasks", "updates", "values"]);
  const letters = parts.filter((part) => part.event.startsWith("messages|child:")).map((part) => part.data[0].content);
  assert.equal(letters.join(""), "abc");
});

test("without a thread", async () => {
  assert.deepEqual(await client.runs.wait(null, "echo", { input: { text: "x" } }), { text: "x", reply: "x" });
  const parts = await collected(client.runs.stream(null, "echo", { input: { text: "x" } }));
  assert.deepEqual(parts.map((part) => part.event), ["metadata", "values", "values"]);
  const batch = await client.runs.createBatch([
    { assistantId: "echo", input: { text: "1" } },
    { assistantId: "echo", input: { text: "2" } },
  ]);
  assert.equal(batch.length, 2);
});

test("an error of the graph is thrown by wait and told by a stream", async () => {
  await assert.rejects(client.runs.wait(await newThread(), "failing", { input: { text: "x" } }), /ValueError: boom: x/);
  const parts = await collected(client.runs.stream(await newThread(), "failing", { input: { text: "x" } }));
  assert.deepEqual(parts.at(-1).data, { error: "ValueError", message: "boom: x" });
});

test("a conflict is not tried again", async () => {
  const thread = await newThread();
  const gates = new Gates();
  const first = await client.runs.create(thread, "slow", { input: { text: "one", gate: gates.folder } });
  await gates.reached("a");
  let calls = 0;
  const counted = new Client({ apiUrl: url, apiKey: null, onRequest: (_, init) => (calls++, init) });
  const second = counted.runs.create(thread, "slow", { input: { text: "two" } });
  await assert.rejects(second, (error) => error.status === 409);
  assert.equal(calls, 1);
  gates.open("a", "b", "c");
  assert.deepEqual((await client.runs.join(thread, first.run_id)).log, ["one:a", "one:b", "one:c"]);
});

test("a run is cancelled, and another removed", async () => {
  const thread = await newThread();
  const gates = new Gates();
  const run = await client.runs.create(thread, "slow", { input: { text: "one", gate: gates.folder } });
  await gates.reached("a");
  await client.runs.cancel(thread, run.run_id, true, "interrupt");
  assert.equal((await client.runs.get(thread, run.run_id)).status, "interrupted");
  await client.runs.delete(thread, run.run_id);
  await assert.rejects(client.runs.get(thread, run.run_id), (error) => error.status === 404);
});

test("several runs are cancelled at once, where the SDK can", async () => {
  if (!client.runs.cancelMany) return;
  const thread = await newThread();
  const gates = new Gates();
  const run = await client.runs.create(thread, "slow", { input: { text: "one", gate: gates.folder } });
  await gates.reached("a");
  await client.runs.cancelMany({ threadId: thread, runIds: [run.run_id] });
  await until(async () => (await client.runs.get(thread, run.run_id)).status === "interrupted");
});

test("a stream is joined for the modes that are wanted", async () => {
  const thread = await newThread();
  const gates = new Gates();
  const options = { input: { text: "one", gate: gates.folder }, streamMode: ["values", "updates", "tasks"] };
  const run = await client.runs.create(thread, "slow", { ...options, streamResumable: true });
  await gates.reached("a");
  const following = collected(client.runs.joinStream(thread, run.run_id, { streamMode: ["updates", "tasks"], lastEventId: "-1" }));
  const alone = collected(client.runs.joinStream(null, run.run_id, { lastEventId: "-1" }));
  gates.open("a", "b", "c");
  const parts = await following;
  assert.deepEqual(parts.filter((part) => part.event === "updates").map((part) => Object.keys(part.data)), [["a"], ["b"], ["c"]]);
  assert.deepEqual([...new Set(parts.map((part) => part.event))].sort(), ["tasks", "updates"]);
  assert.equal((await alone)[0].event, "metadata");
  const rest = await collected(client.runs.joinStream(thread, run.run_id, { lastEventId: parts.at(-1).id }));
  assert.deepEqual(rest.map((part) => part.event), ["values"]);
});

test("leaving a stream cancels where it was asked for", async () => {
  const thread = await newThread();
  const gates = new Gates();
  const leaving = new AbortController();
  const options = { input: { text: "one", gate: gates.folder }, onDisconnect: "cancel", signal: leaving.signal };
  const stream = collected(client.runs.stream(thread, "slow", options));
  await gates.reached("a");
  leaving.abort();
  await assert.rejects(stream);
  await until(async () => (await client.threads.get(thread)).status === "interrupted");
});
