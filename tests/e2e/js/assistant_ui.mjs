// The LangGraph runtime of assistant-ui, rendered without a browser: its stream and its messages, against a real server.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test, { after } from "node:test";
import { pathToFileURL } from "node:url";

import { client, newThread, until } from "./server.mjs";

const require = createRequire(pathToFileURL(`${process.env.INSTALLED}/`));
const installed = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createElement } = await installed("react");
const { default: renderer } = await installed("react-test-renderer");
const { appendLangChainChunk, unstable_createLangGraphStream, useLangGraphMessages } = await import(
  pathToFileURL(`${process.env.INSTALLED}/node_modules/@assistant-ui/react-langgraph/dist/index.js`).href
);

after(() => setTimeout(() => process.exit(), 200).unref());

async function chat(graph) {
  const thread = await newThread();
  const started = unstable_createLangGraphStream({ client, assistantId: graph });
  const stream = (messages, config) => started(messages, { ...config, initialize: async () => ({ externalId: thread }) });
  const page = { abortSignal: new AbortController().signal };
  function Chat() {
    page.now = useLangGraphMessages({ stream, appendMessage: appendLangChainChunk });
    return null;
  }
  renderer.create(createElement(Chat));
  await until(() => page.now);
  return page;
}

test("a model's answer appears", async () => {
  const page = await chat("chat");
  await page.now.sendMessage([{ type: "human", content: "hi", id: "asked" }], { abortSignal: page.abortSignal });
  await until(() => page.now.messages.length === 2);
  assert.equal(page.now.messages[1].type, "ai");
  assert.ok(page.now.messages[1].content);
});

test("a question is shown and answered", async () => {
  const page = await chat("hitl_batched");
  await page.now.sendMessage([{ type: "human", content: "write", id: "asked" }], { abortSignal: page.abortSignal });
  await until(() => page.now.interrupt);
  const command = { resume: { decisions: [{ type: "approve" }] } };
  await page.now.sendMessage([], { command, abortSignal: page.abortSignal });
  await until(() => !page.now.interrupt && page.now.messages.at(-1).content.includes?.("done"));
});
