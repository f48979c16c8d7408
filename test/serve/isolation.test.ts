import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serve } from "./served.ts";

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
  ["read a file", () => fileURLToPath(new URL("../../src/app.ts", import.meta.url))],
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
  ["a manifest without endpoints", { message: { type: "ready", manifest: { name: "x" } } }],
  ["bytes that are no message", { message: "rubbish", raw: true }],
])("%s from a worker ends that worker and nothing else", async (_, forged) => {
  expect(await served.post("/forge", forged)).toMatchObject({ status: 500 });
  expect((await served.post("/environment", {})).status).toBe(200);
});

it("a message that claims to be larger than any result ends the worker at once", async () => {
  expect(await served.post("/forge_length", { bytes: 0xffffffff })).toMatchObject({ status: 500 });
  expect((await served.post("/environment", {})).status).toBe(200);
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
