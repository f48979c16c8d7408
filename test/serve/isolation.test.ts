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
