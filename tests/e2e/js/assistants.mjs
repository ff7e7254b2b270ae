import assert from "node:assert/strict";
import test from "node:test";

import { client } from "./server.mjs";

test("the assistant of a graph is found by search and by id", async () => {
  const [found] = await client.assistants.search({ graphId: "echo", metadata: { created_by: "system" } });
  assert.equal(found.graph_id, "echo");
  assert.deepEqual(await client.assistants.get(found.assistant_id), found);
  const page = await client.assistants.search({ graphId: "echo", limit: 1, includePagination: true });
  assert.equal(page.assistants.length, 1);
  assert.ok((await client.assistants.count({ graphId: "echo" })) >= 1);
});

test("graph, schemas and subgraphs of a graph", async () => {
  const [found] = await client.assistants.search({ graphId: "subgraph" });
  const graph = await client.assistants.getGraph("subgraph", { xray: true });
  assert.ok(graph.nodes.some((node) => node.id === "outer"));
  const schemas = await client.assistants.getSchemas(found.assistant_id);
  assert.equal(schemas.graph_id, "subgraph");
  assert.ok(schemas.state_schema.properties.log);
  assert.deepEqual(Object.keys(await client.assistants.getSubgraphs(found.assistant_id, { recurse: true })), ["child"]);
});

test("an assistant of one's own has versions", async () => {
  const made = await client.assistants.create({ graphId: "factory", name: "first", config: { configurable: { greeting: "hi" } } });
  const changed = await client.assistants.update(made.assistant_id, { name: "second", config: { configurable: { greeting: "hey" } } });
  assert.deepEqual([made.version, changed.version], [1, 2]);
  assert.deepEqual((await client.runs.wait(null, made.assistant_id, { input: { text: "you" } })).reply, "hey, you");
  const versions = await client.assistants.getVersions(made.assistant_id);
  assert.deepEqual(versions.map((one) => one.version), [2, 1]);
  await client.assistants.setLatest(made.assistant_id, 1);
  assert.equal((await client.assistants.get(made.assistant_id)).name, "first");
  assert.deepEqual((await client.runs.wait(null, made.assistant_id, { input: { text: "you" } })).reply, "hi, you");
  await client.assistants.delete(made.assistant_id);
  await assert.rejects(client.assistants.get(made.assistant_id), (error) => error.status === 404);
});
