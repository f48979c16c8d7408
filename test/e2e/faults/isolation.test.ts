import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BAD_FRAMES } from "../../fixtures/frames.ts";
import { type Served, serve } from "../serve/served.ts";

const SECRET = "a secret of the node";

let folder: string;
let served: Served;
beforeAll(async () => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-private-"));
  writeFileSync(join(folder, "secret.txt"), SECRET);
  process.env.TESSERA_TEST_SECRET = SECRET;
  served = await serve("escapes", { database: join(folder, "tasks.db") });
});
afterAll(async () => {
  delete process.env.TESSERA_TEST_SECRET;
  await served.stop();
  rmSync(folder, { recursive: true, force: true });
});

const attempt = async (what: string, path = "") =>
  (await served.post("/attempt", { what, path })).json;

it("a worker has nothing of the node's environment", async () => {
  const { json, text } = await served.post("/environment", {});
  expect(Object.keys(json as object).sort()).toEqual(["LANG", "TMPDIR"]);
  expect(text).not.toContain(SECRET);
  expect((await served.post("/arguments", {})).text).not.toContain(folder);
});

it.each([
  ["read a file", () => join(folder, "secret.txt")],
  ["read a file", () => join(folder, "tasks.db")],
  ["read a file", () => "/etc/hostname"],
  ["read a file", () => fileURLToPath(new URL("../../../src/app/serve.ts", import.meta.url))],
  ["list a folder", () => folder],
  ["list a folder", () => tmpdir()],
  ["read through a link", () => join(folder, "secret.txt")],
  ["read the environment of its parent", () => ""],
  ["write a file", () => join(folder, "written.txt")],
  ["write a file", () => fileURLToPath(new URL("./written.txt", import.meta.url))],
  ["make a folder", () => join(folder, "made")],
  ["run a command", () => ""],
  ["start a process", () => ""],
  ["fork itself", () => ""],
  ["start a thread", () => ""],
])("a worker cannot %s outside of what it was given (%#)", async (what, path) => {
  expect(await attempt(what, path())).toEqual({ refused: "ERR_ACCESS_DENIED" });
});

it("a worker cannot load native code", async () => {
  expect(await attempt("load native code")).toEqual({ refused: "ERR_DLOPEN_DISABLED" });
});

it.each(["send a signal to its node", "send a signal to all processes of its group"])(
  "a worker cannot %s",
  async (what) => {
    expect(await attempt(what)).toEqual({
      refused: "Error: a service may not send signals to other processes",
    });
  },
);

const counts = (change: object, times = 1) => ({
  message: { type: "metrics", changes: Array(times).fill(change), dropped: [] },
});

it.each([
  ["a message that is not an object", { message: 5 }],
  ["a message of no known type", { message: { type: "surprise" } }],
  ["results that are no list", { message: { type: "results", results: 5 } }],
  ["a result without a shape", { message: { type: "results", results: [{ id: 1 }] } }],
  [
    "a failure with violations that are no list",
    {
      message: {
        type: "results",
        results: [
          { id: 1, failure: { code: "x", reason: "CALL_FAILED", message: "", violations: 3 } },
        ],
      },
    },
  ],
  [
    "a log line of no known level",
    { message: { type: "log", id: 1, level: "toString", message: "" } },
  ],
  ["a manifest in the header", { message: { type: "ready", manifest: { name: "x" } } }],
  ["bytes that are no message", { message: "rubbish", raw: true }],
  ["counts that are no list", { message: { type: "metrics", changes: 5, dropped: [] } }],
  [
    "more counts than a worker sends together",
    counts({ metric: "open", labels: [], value: 1 }, 501),
  ],
  ["a count that is no number", counts({ metric: "open", labels: [], value: null })],
  [
    "a count of a metric of the platform",
    counts({ metric: "tessera_workers", labels: [], value: 1 }),
  ],
  ["a count of a metric that is no name", counts({ metric: "__proto__", labels: [], value: 1 })],
  ["a counter that goes down", counts({ metric: "tries_total", labels: ["x"], value: -1 })],
  ["a count without its label", counts({ metric: "tries_total", labels: [], value: 1 })],
  [
    "a count with an endless label",
    counts({ metric: "tries_total", labels: ["x".repeat(201)], value: 1 }),
  ],
  [
    "a count for an endpoint that there is not",
    counts({ metric: "tries_total", endpoint: "x", labels: ["x"], value: 1 }),
  ],
  ["a gauge of an endpoint", counts({ metric: "open", endpoint: "forge", labels: [], value: 1 })],
  ["a histogram without buckets", counts({ metric: "size", labels: [], value: 1 })],
  [
    "a histogram with other buckets",
    counts({ metric: "size", labels: [], value: 1, counts: [1, 1, 1] }),
  ],
  [
    "a histogram with half a value",
    counts({ metric: "size", labels: [], value: 1, counts: [0.5, 1] }),
  ],
  [
    "events left out of an unknown metric",
    { message: { type: "metrics", changes: [], dropped: [{ metric: "x", events: 1 }] } },
  ],
])("%s from a worker ends that worker and nothing else", async (_, forged) => {
  expect(await served.post("/forge", forged)).toMatchObject({ status: 500 });
  expect((await served.post("/environment", {})).status).toBe(200);
});

it.each([
  ...Object.keys(BAD_FRAMES),
  "a manifest with a number for a metric",
  "a manifest with a bucket that has no text",
  "a manifest with a metric of the platform",
  "a second manifest",
])("%s from a worker ends that worker and nothing else", async (what) => {
  const begunMs = performance.now();
  expect(await served.post("/forge_bad", { what })).toMatchObject({ status: 500 });
  expect((await served.post("/environment", {})).status).toBe(200);
  // Reading more than a bound allows takes a minute, in which nothing else is answered.
  expect(performance.now() - begunMs).toBeLessThan(20_000);
});

it("nothing that a worker may not count is counted", async () => {
  const { text } = await served.get("/metrics");
  expect(text).not.toMatch(/^(?:tries_total|open|size)/m);
  expect(text).toMatch(/^tessera_workers\{/m);
});

it("what it tried to write is not there", () => {
  expect(existsSync(join(folder, "written.txt"))).toBe(false);
  expect(existsSync(join(folder, "made"))).toBe(false);
  expect(existsSync(fileURLToPath(new URL("./written.txt", import.meta.url)))).toBe(false);
});

it("a worker can write a scratch folder of its own, which goes with it", async () => {
  const one = await serve("escapes");
  const { scratch, text } = (await one.post("/scratch", {})).json as Record<string, string>;
  expect(text).toBe("kept for a while");
  expect(await attempt("list a folder", scratch)).toEqual({ refused: "ERR_ACCESS_DENIED" });
  await one.stop();
  expect(existsSync(scratch ?? "")).toBe(false);
});
