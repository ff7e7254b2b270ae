// Calls every method of the JavaScript SDK on one server, and prints what each answers. Without a server it prints the
// methods of the SDK that have no row.

import { randomUUID } from "node:crypto";

const [sdk, apiUrl] = process.argv.slice(2);
const { Client } = await import(sdk);
const client = new Client({ apiUrl: apiUrl ?? "http://127.0.0.1:9", apiKey: null, callerOptions: { maxRetries: 0 } });

const { assistants, threads, runs, crons, store } = client;
const input = { text: "x" };
const daily = { schedule: "0 9 * * *", input };
const namespace = ["conformance", randomUUID()];
const made = {};
const assistant = () => made["assistants.create"].assistant_id;
const thread = () => made["threads.create"].thread_id;
const run = () => made["runs.create"].run_id;
const cron = () => made["crons.create"].cron_id;
const delayed = async () => (await runs.create(thread(), "linear", { input, afterSeconds: 600 })).run_id;

const rows = {
  "assistants.create": () => assistants.create({ graphId: "linear", name: "sdk", metadata: { by: "javascript" } }),
  "assistants.get": () => assistants.get(assistant()),
  "assistants.getGraph": () => assistants.getGraph("deep", { xray: true }),
  "assistants.getSchemas": () => assistants.getSchemas(assistant()),
  "assistants.getSubgraphs": () => assistants.getSubgraphs(assistant(), { recurse: true }),
  "assistants.update": () => assistants.update(assistant(), { name: "other", metadata: { more: 1 } }),
  "assistants.getVersions": () => assistants.getVersions(assistant()),
  "assistants.setLatest": () => assistants.setLatest(assistant(), 1),
  "assistants.search": () => assistants.search({ graphId: "linear", metadata: { by: "javascript" }, limit: 1 }),
  "assistants.count": async () => (await assistants.count({ metadata: { by: "javascript" } })) > 0,
  "threads.create": () => threads.create({ metadata: { by: "javascript" } }),
  "threads.get": () => threads.get(thread()),
  "threads.update": () => threads.update(thread(), { metadata: { more: 1 } }),
  "runs.wait": () => runs.wait(thread(), "linear", { input }),
  "runs.create": () => runs.create(thread(), "linear", { input, streamResumable: true, streamMode: "values" }),
  "runs.join": () => runs.join(thread(), run()),
  "runs.joinStream": () => collected(runs.joinStream(thread(), run(), { lastEventId: "-1" })),
  "runs.get": () => runs.get(thread(), run()),
  "runs.list": () => runs.list(thread(), { limit: 5 }),
  "runs.stream": () => collected(runs.stream(null, "linear", { input, streamMode: ["values", "updates"] })),
  "runs.createBatch": async () => (await runs.createBatch([{ assistantId: "linear", input }])).length,
  "threads.joinStream": () => first(threads.joinStream(thread(), { lastEventId: "-" })),
  "threads.stream": () => output(threads.stream({ assistantId: "linear" })),
  "threads.getState": () => threads.getState(thread()),
  "threads.getHistory": () => threads.getHistory(thread(), { limit: 3 }),
  "threads.updateState": () => threads.updateState(thread(), { values: { text: "y" }, asNode: "third" }),
  "threads.patchState": () => threads.patchState(thread(), { more: 1 }),
  "threads.search": () => threads.search({ ids: [thread()] }),
  "threads.count": async () => (await threads.count({ metadata: { by: "javascript" } })) > 0,
  "threads.copy": () => threads.copy(thread()),
  "threads.prune": () => threads.prune([made["threads.copy"].thread_id]),
  "crons.create": () => crons.create("linear", daily),
  "crons.createForThread": () => crons.createForThread(thread(), "linear", daily),
  "crons.update": () => crons.update(cron(), { schedule: "0 8 * * *" }),
  "crons.search": () => crons.search({ threadId: thread() }),
  "crons.count": () => crons.count({ threadId: thread() }),
  "crons.delete": () => crons.delete(cron()),
  "store.putItem": () => store.putItem(namespace, "key", { n: 1 }),
  "store.getItem": () => store.getItem(namespace, "key"),
  "store.searchItems": () => store.searchItems(namespace),
  "store.listNamespaces": () => store.listNamespaces({ prefix: namespace }),
  "store.deleteItem": () => store.deleteItem(namespace, "key"),
  "runs.cancel": async () => runs.cancel(thread(), await delayed()),
  "runs.cancelMany": async () => runs.cancelMany({ threadId: thread(), runIds: [await delayed()] }),
  "runs.delete": () => runs.delete(thread(), run()),
  "threads.delete": () => threads.delete(thread()),
  "assistants.delete": () => assistants.delete(assistant()),
  "~ui.getComponent": () => client["~ui"].getComponent("linear", "chart"),
};

async function collected(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

async function first(stream) {
  for await (const part of stream) return part;
}

async function output(stream) {
  await stream.run.start({ input });
  const values = await stream.output;
  await stream.close();
  return values;
}

// What the SDK's own classes define; their base class has only what sends requests.
function methods() {
  const nouns = Object.entries(client).filter(([, part]) => typeof part === "object");
  return nouns.flatMap(([noun, part]) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(part))
      .filter((name) => name !== "constructor")
      .map((name) => `${noun}.${name}`),
  );
}

async function answer(row) {
  try {
    return { status: 200, body: (await row()) ?? null };
  } catch (error) {
    return { status: error.status ?? String(error) };
  }
}

async function answers() {
  const known = methods();
  const told = {};
  for (const [name, row] of Object.entries(rows)) {
    if (!known.includes(name)) continue;
    told[name] = await answer(row);
    made[name] = told[name].body;
  }
  return told;
}

const missing = () => methods().filter((name) => !rows[name]);
console.log(JSON.stringify(apiUrl ? await answers() : { missing: missing(), rows: Object.keys(rows), methods: methods() }));
process.exit();
