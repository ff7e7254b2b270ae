// What the tests share: the SDK in the version under test, a client of the server under test, and small waits.

import { setTimeout as pause } from "node:timers/promises";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const url = process.env.ASSENT_URL;
export const { Client } = await import(process.env.LANGGRAPH_SDK);
export const client = new Client({ apiUrl: url, apiKey: null });

export async function newThread() {
  return (await client.threads.create()).thread_id;
}

export async function collected(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

export async function until(condition, patience = 90_000) {
  const deadline = Date.now() + patience;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > deadline) throw new Error(`never came true: ${condition}`);
    await pause(10);
  }
}

// A folder at whose gates the graph `slow` stops, until `let` opens them.
export class Gates {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "gates-"));
  }
  async reached(step) {
    await until(() => existsSync(join(this.folder, `${step}.started`)));
  }
  open(...steps) {
    for (const step of steps) writeFileSync(join(this.folder, `${step}.go`), "");
  }
}
