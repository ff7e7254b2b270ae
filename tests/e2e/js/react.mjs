// `useStream` of @langchain/react, rendered without a browser, against a real server.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test, { after } from "node:test";
import { pathToFileURL } from "node:url";

import { client, Gates, until, url } from "./server.mjs";

const require = createRequire(pathToFileURL(`${process.env.INSTALLED}/`));
const installed = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createElement } = await installed("react");
const { default: renderer } = await installed("react-test-renderer");
const { useStream } = require("@langchain/react");

after(() => setTimeout(() => process.exit(), 200).unref()); // React's controllers may reconnect for a while

class Page {
  constructor(graph, options = {}) {
    this.seen = [];
    const page = this;
    function Chat() {
      page.now = useStream({ assistantId: graph, apiUrl: url, onThreadId: (id) => (page.thread = id), ...options });
      page.seen.push(page.now.messages.map((message) => message.text));
      return null;
    }
    this.root = renderer.create(createElement(Chat));
  }
  async shows(condition) {
    await until(() => this.now && condition(this.now));
    return this.now;
  }
  close() {
    this.root.unmount();
  }
}

const hello = { messages: [{ type: "human", content: "hi" }] };

test("a model's answer appears", async () => {
  const page = new Page("chat");
  await page.shows(() => true);
  await page.now.submit(hello);
  const { messages } = await page.shows((now) => !now.isLoading && now.messages.length === 2);
  assert.deepEqual(messages.map((message) => message.getType()), ["human", "ai"]);
  assert.ok(messages[1].text);
  page.close();
});

test("a question is shown and answered", async () => {
  const page = new Page("hitl");
  await page.shows(() => true);
  void page.now.submit({ text: "draft" });
  const { interrupts } = await page.shows((now) => now.interrupts.length);
  assert.equal(interrupts[0].value.action_request.args.body, "draft");
  await page.now.respond([{ type: "accept", args: null }]);
  const { values } = await page.shows((now) => now.values.answer && !now.isLoading);
  assert.equal(values.answer.type, "accept");
  assert.deepEqual(page.now.interrupts, []);
  page.close();
});

test("a page that is opened again shows the thread and its question", async () => {
  const first = new Page("hitl");
  await first.shows(() => true);
  void first.now.submit({ text: "draft" });
  await first.shows((now) => now.interrupts.length);
  first.close();
  const again = new Page("hitl", { threadId: first.thread });
  const { interrupts } = await again.shows((now) => now.interrupts.length && now.values.text === "draft");
  await again.now.respond([{ type: "ignore", args: null }], { interruptId: interrupts[0].id });
  await again.shows((now) => now.values.answer?.type === "ignore");
  again.close();
});

test("a failed run is shown as an error", async () => {
  const page = new Page("failing");
  await page.shows(() => true);
  await page.now.submit({ text: "x" }).catch(() => {});
  const { error } = await page.shows((now) => now.error);
  assert.match(String(error.message ?? error), /boom: x/);
  page.close();
});

test("a run is stopped", async () => {
  const gates = new Gates();
  const page = new Page("slow");
  await page.shows(() => true);
  void page.now.submit({ text: "one", gate: gates.folder });
  await gates.reached("a");
  await page.shows((now) => now.isLoading);
  await page.now.stop();
  await page.shows((now) => !now.isLoading);
  const [run] = await client.runs.list(page.thread);
  await until(async () => ["interrupted", "success"].includes((await client.runs.get(page.thread, run.run_id)).status));
  gates.open("a", "b", "c");
  page.close();
});
