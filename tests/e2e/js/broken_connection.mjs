// Its stream is cut on the way by whoever runs this; the SDK takes it up again, and nothing is missing or doubled.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { client, newThread } from "./server.mjs";

test("a stream whose connection breaks comes to its end", async () => {
  const input = { text: "one", gate: process.env.GATES };
  const options = { input, streamMode: "updates", streamResumable: true };
  const parts = [];
  for await (const part of client.runs.stream(await newThread(), "slow", options)) {
    parts.push(part);
    if (part.event === "updates") writeFileSync(join(process.env.GATES, "first part.started"), "");
  }
  assert.deepEqual(parts.map((part) => part.event), ["metadata", "updates", "updates", "updates"]);
  assert.deepEqual(parts.slice(1).map((part) => Object.keys(part.data)), [["a"], ["b"], ["c"]]);
});
