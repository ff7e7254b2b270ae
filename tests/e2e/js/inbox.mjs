// Agent Inbox's example, and the four answers, as a TypeScript client of its types gives them.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";

import { client, collected, newThread } from "./server.mjs";

const call = { id: "call_1", name: "send_email", args: { to: "a@b.c", subject: "Offer", body: "598 euro" }, type: "tool_call" };
const email = { messages: [{ role: "ai", content: "", tool_calls: [call] }] };

async function asked(graph, input) {
  const mark = randomUUID();
  const { thread_id } = await client.threads.create({ metadata: { mark } });
  await client.runs.wait(thread_id, graph, { input });
  const [thread] = await client.threads.search({ status: "interrupted", metadata: { mark, graph_id: graph } });
  const [[interrupt]] = Object.values(thread.interrupts);
  return { thread: thread.thread_id, interrupt: interrupt.value };
}

async function answered(thread, graph, response) {
  const parts = await collected(client.runs.stream(thread, graph, { command: { resume: [response] }, streamMode: "events" }));
  assert.ok(parts.some((part) => part.event === "events" && part.data.event === "on_chain_start" && part.data.metadata.langgraph_node));
  assert.ok(parts.every((part) => part.event !== "error"));
  assert.equal((await client.threads.get(thread)).status, "idle");
  return (await client.threads.getState(thread)).values;
}

test("the example asks about its tool call, and takes a response", async () => {
  const { thread, interrupt } = await asked("inbox_example", email);
  assert.deepEqual(interrupt.action_request, { action: "send_email", args: call.args });
  assert.deepEqual(interrupt.config, { allow_ignore: true, allow_respond: true, allow_edit: false, allow_accept: false });
  assert.match(interrupt.description, /^# Offer/);
  const { messages } = await answered(thread, "inbox_example", { type: "response", args: "make it 589" });
  assert.deepEqual([messages.at(-1).type, messages.at(-1).content], ["tool", "make it 589"]);
});

test("the example is ignored", async () => {
  const { thread } = await asked("inbox_example", email);
  const { messages } = await answered(thread, "inbox_example", { type: "ignore", args: null });
  assert.equal(messages.at(-1).content, "the person chose to ignore this");
});

test("accept and edit come back as they were sent", async () => {
  for (const type of ["accept", "edit"]) {
    const { thread, interrupt } = await asked("hitl", { text: "draft" });
    const { action, args } = interrupt.action_request;
    const request = type === "edit" ? { action, args: { ...args, body: "better" } } : { action, args };
    const values = await answered(thread, "hitl", { type, args: request });
    assert.deepEqual(values.answer, { type, args: request });
  }
});

test("two questions at once are answered by id, one with a mistake first", async () => {
  const thread = await newThread();
  await client.runs.wait(thread, "parallel", { input: { text: "x" } });
  const [left, right] = Object.values((await client.threads.get(thread)).interrupts).flat();
  const wrong = client.runs.wait(thread, "parallel", { command: { resume: "yes" } });
  await assert.rejects(wrong, (error) => error.status === 422 && error.message.includes(left.id));
  const done = await client.runs.wait(thread, "parallel", { command: { resume: { [left.id]: "yes", [right.id]: "no" } } });
  assert.deepEqual(done.answers.length, 2);
  const late = client.runs.wait(thread, "parallel", { command: { resume: { [left.id]: "again" } } });
  await assert.rejects(late, (error) => error.status === 409);
});

test("the decisions of LangChain's middleware", async () => {
  const thread = await newThread();
  const input = { messages: [{ role: "user", content: "hello" }] };
  const paused = await client.runs.wait(thread, "hitl_batched", { input });
  assert.equal(paused.__interrupt__[0].value.action_requests.length, 1);
  const done = await client.runs.wait(thread, "hitl_batched", { command: { resume: { decisions: [{ type: "approve" }] } } });
  assert.equal(done.messages.at(-1).content.trim(), "done: sent to a@b.c");
});
