// Starts a thread whose agent asks about an email, and prints the thread's id.

import { Client } from "@langchain/langgraph-sdk";

const email = { to: "ana@example.com", subject: "Offer", body: "Here is our offer." };
const call = { id: "call_1", name: "send_email", args: email, type: "tool_call" };
const client = new Client({ apiUrl: process.env.DEPLOYMENT_URL ?? "http://localhost:2123", apiKey: null });

const { thread_id } = await client.threads.create();
await client.runs.wait(thread_id, "agent_inbox", {
  input: { messages: [{ role: "ai", content: "", tool_calls: [call] }] },
});
console.log(thread_id);
