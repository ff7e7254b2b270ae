// The example of Agent Inbox's documentation in TypeScript: a node submits the last tool call, which can be answered or
// ignored. README.md beside this file serves it and adds it to Assent's inbox.

import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";
import type { HumanInterrupt, HumanResponse } from "@langchain/langgraph/prebuilt";

function myGraphFunction({ messages }: typeof MessagesAnnotation.State) {
  const toolCall = lastToolCall(messages.at(-1) as AIMessage);
  const request: HumanInterrupt = {
    action_request: { action: toolCall.name, args: toolCall.args },
    config: { allow_ignore: true, allow_respond: true, allow_edit: false, allow_accept: false },
    description: emailMarkdown(toolCall.args),
  };
  const [response] = interrupt<HumanInterrupt[], HumanResponse[]>([request]);
  const answer = response.type === "response" ? String(response.args) : "The person has ignored this email.";
  return { messages: [new ToolMessage({ content: answer, tool_call_id: toolCall.id ?? "" })] };
}

function lastToolCall(message: AIMessage) {
  const toolCall = message.tool_calls?.at(-1);
  if (!toolCall) throw new Error("the last message has no tool call");
  return toolCall;
}

function emailMarkdown({ subject, to, body }: Record<string, string>) {
  return `# ${subject}\n\n**To**: ${to}\n\n${body}`;
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("myGraphFunction", myGraphFunction)
  .addEdge(START, "myGraphFunction")
  .compile();
