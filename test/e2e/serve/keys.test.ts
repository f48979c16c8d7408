/** Limits by key: what docs/limits-by-key.md shows works as it stands there. */
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf } from "../docs/blocks.ts";
import { Folder } from "../start/platform.ts";
import { Gate } from "./gate.ts";
import { type Served, serveFile } from "./served.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const block = blocksOf("docs/limits-by-key.md");

const folder = new Folder();
let served: Served;
let gate: Gate;
beforeAll(async () => {
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  const service = join(folder.path, "service.ts");
  writeFileSync(service, block("ts"));
  [served, gate] = await Promise.all([serveFile(service), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** What the commands of the page print. */
async function run(which: number): Promise<string> {
  const commands = block("sh", which)
    .replaceAll("http://localhost:3000", served.origin)
    .replaceAll("https://example.com/", gate.url);
  const { stdout } = await promisify(execFile)("bash", ["-c", commands]);
  return stdout;
}

/** The ids of the tasks that the commands of the page submit, whose pages are the gate. */
async function submitAll(which: number): Promise<string[]> {
  const stdout = await run(which);
  return [...stdout.matchAll(/"task_id":"([^"]+)"/g)].map(([, id = ""]) => id);
}

it("runs two tasks of a key at a time, and those of another beside them", async () => {
  const ids = await submitAll(0);
  const [first, second, third, other] = ids as [string, string, string, string];
  const started = [await gate.arrival(), await gate.arrival(), await gate.arrival()];
  for (const id of [first, second, other]) {
    expect(await served.status("preview", id)).toMatchObject({ status: "running" });
  }
  expect(await served.status("preview", third)).toMatchObject({
    ...{ status: "queued", key: "ada" },
    queued_reason: { code: "key_limit" },
  });
  expect((await served.status("preview", third)).queue_position).toBeUndefined();
  for (const arrival of started) {
    arrival.open("seen");
  }
  (await gate.arrival()).open("seen, too");
  expect((await served.result("preview", third)).text).toContain("seen, too");
});

it("starts no more tasks of a key than its rate, and says what the next one waits for", async () => {
  const ids = await submitAll(1);
  const last = ids.pop() ?? "";
  for (const id of ids) {
    await served.result("notify", id);
  }
  expect(await served.status("notify", last)).toMatchObject({
    status: "queued",
    queued_reason: {
      code: "key_rate",
      message: "it waits for the rate of its key, which may start 3 an hour",
    },
  });
});

it("refuses calls of an api beyond the rate of their key, and says when there is more", async () => {
  const printed = await run(2);
  expect([...printed.matchAll(/HTTP\/1.1 (\d+)/gm)].map(([, status]) => status)).toEqual([
    ...["200", "200", "429"],
  ]);
  expect(printed).toMatch(/^ratelimit-policy: "key";q=2;w=3600\r$/im);
  // Also what succeeds says what is left.
  const left = [...printed.matchAll(/^ratelimit: "key";r=(\d);t=\d+\r$/gim)];
  expect(left.map(([, calls]) => calls)).toEqual(["1", "0", "0"]);
  expect(printed).toMatch(/^retry-after: \d+\r$/im);
  expect(printed).toContain("KEY_LIMITED");
  const called = await fetch(`${served.origin}/tessera.v1.EndpointService/CallEndpoint`, {
    method: "POST",
    headers: { "content-type": "application/json", "tessera-key": "bob" },
    body: JSON.stringify({ endpoint: "lookup", arguments: { word: "one" } }),
  });
  expect([called.status, called.headers.get("ratelimit")]).toEqual([200, '"key";r=1;t=1800']);
  const refused = await fetch(`${served.origin}/tessera.v1.EndpointService/CallEndpoint`, {
    method: "POST",
    headers: { "content-type": "application/json", "tessera-key": "ada" },
    body: JSON.stringify({ endpoint: "lookup", arguments: { word: "one" } }),
  });
  expect([refused.status, refused.headers.get("ratelimit-policy")]).toEqual([
    ...[429, '"key";q=2;w=3600'],
  ]);
});

it("refuses a key that is too long, and counts its code points", async () => {
  const submit = (key: string) =>
    fetch(`${served.origin}/notify/submit?key=${encodeURIComponent(key)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: "hello" }),
    });
  expect((await submit("\u{1f600}".repeat(128))).status).toBe(202);
  expect((await submit("a\u200bb")).status).toBe(202);
  for (const key of ["a".repeat(129), "k".repeat(10_000), "a\nb", "\u{1f600}".repeat(129)]) {
    expect((await submit(key)).status).toBe(400);
  }
});
