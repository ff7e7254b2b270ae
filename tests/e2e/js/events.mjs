import assert from "node:assert/strict";
import test from "node:test";

import { client, until } from "./server.mjs";

const hello = { messages: [{ role: "user", content: "hi" }] };

for (const transport of ["sse", "websocket"]) {
  const opened = (graph) => client.threads.stream({ assistantId: graph, transport });

  test(`${transport}: a run gives its output`, async () => {
    const thread = opened("echo");
    const { run_id } = await thread.run.start({ input: { text: "x" } });
    assert.ok(run_id);
    assert.deepEqual(await thread.output, { text: "x", reply: "x" });
    await thread.close();
  });

  test(`${transport}: values and messages are projected, also of subgraphs`, async () => {
    const thread = opened("streams");
    const events = await thread.subscribe({ channels: ["values", "messages", "custom", "lifecycle"] });
    await thread.run.start({ input: hello });
    const seen = [];
    for await (const event of events) {
      seen.push(event);
      const root = event.params.namespace.length === 0 && event.method === "lifecycle";
      if (root && event.params.data.event === "completed") break;
    }
    const texts = seen.filter((event) => event.params.data.delta?.text).map((event) => event.params.data.delta.text);
    assert.equal(texts.join(""), "abc");
    const children = seen.filter((event) => event.params.data.event === "started").map((event) => event.params.data.graph_name);
    assert.deepEqual(children, ["child"]);
    const numbers = seen.map((event) => event.seq);
    assert.deepEqual(numbers, [...new Set(numbers)].sort((one, other) => one - other));
    assert.ok(numbers.every(Number.isSafeInteger));
    await thread.close();
  });

  test(`${transport}: a question is answered by its id`, async () => {
    const thread = opened("hitl");
    await thread.run.start({ input: { text: "draft" } });
    await until(() => thread.interrupts.length);
    const [question] = thread.interrupts;
    assert.equal(question.payload.action_request.action, "send_email");
    const response = [{ type: "accept", args: null }];
    await thread.input.respond({ interrupt_id: question.interruptId, namespace: question.namespace, response });
    const { values } = await until(async () => {
      const state = await client.threads.getState(thread.threadId);
      return state.values.answer && state;
    });
    assert.equal(values.answer.type, "accept");
    await thread.close();
  });

  test(`${transport}: new input does not answer a question`, async () => {
    const thread = opened("hitl");
    await thread.run.start({ input: { text: "draft" } });
    await until(() => thread.interrupts.length);
    await assert.rejects(thread.run.start({ input: { text: "another" } }), /waits for/);
    await thread.close();
  });
}
