// Agents that ask before they ship: LangChain's middleware, and a deep agent by its subagent. Their model follows a
// script: the last human message is a JSON list of tool calls.

import { appendFileSync } from "node:fs";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { createDeepAgent } from "deepagents";
import { createAgent, humanInTheLoopMiddleware, tool } from "langchain";
import { z } from "zod";

class ScriptedModel extends BaseChatModel {
  hasTools = false;

  _llmType() {
    return "scripted";
  }

  bindTools() {
    const bound = new ScriptedModel({});
    bound.hasTools = true;
    return bound;
  }

  async _generate(messages: BaseMessage[]) {
    const message = reply(messages);
    return { generations: [{ text: message.text, message }] };
  }
}

function reply(messages: BaseMessage[]): AIMessage {
  const last = messages.findLastIndex((message) => message.getType() === "human");
  const results = messages.slice(last).filter((message) => message.getType() === "tool");
  if (results.length > 0) return new AIMessage(`done: ${results.map((message) => message.text).join("; ")}`);
  const calls = JSON.parse(messages[last].text);
  return new AIMessage({
    content: "",
    tool_calls: calls.map((call: object, index: number) => ({ ...call, id: `call_${last}_${index}`, type: "tool_call" })),
  });
}

const ship = tool(
  async ({ city, log }) => {
    appendFileSync(log, `${city}\n`);
    return `shipped to ${city}`;
  },
  { name: "ship", description: "Ships an order to a city.", schema: z.object({ city: z.string(), log: z.string() }) },
);

const model = new ScriptedModel({});

export const batched = createAgent({
  model,
  tools: [ship],
  middleware: [humanInTheLoopMiddleware({ interruptOn: { ship: true } })],
});

export const deep = createDeepAgent({
  model,
  subagents: [
    {
      name: "shipper",
      description: "Ships orders.",
      systemPrompt: "Ship what you are told.",
      tools: [ship],
      interruptOn: { ship: true },
    },
  ],
});
