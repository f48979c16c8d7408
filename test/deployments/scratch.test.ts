import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ScratchFolders } from "../../src/deployments/scratch.ts";

const before = process.env.TMPDIR;
let temporary: string;

/** By then the folders that a test makes are old. */
const LATER_MS = Date.now() + 3_600_000;

/** The folder that a node left behind. */
function leftFolder(): string {
  const left = join(temporary, "tessera-node-x");
  mkdirSync(left);
  return left;
}

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "tessera-scratch-test-"));
  process.env.TMPDIR = temporary;
});

afterEach(() => {
  if (before === undefined) {
    delete process.env.TMPDIR;
  } else {
    process.env.TMPDIR = before;
  }
  rmSync(temporary, { recursive: true, force: true });
});

/** A process that looks like a worker, or like any other program, and runs until it is killed. */
async function endless(name: string) {
  const file = join(temporary, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, 'process.stdout.write("up"); setInterval(() => {}, 1000);');
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  return child;
}

describe("scratch folders", () => {
  test("are made for each worker and removed with it", () => {
    const folders = new ScratchFolders(LATER_MS);
    const [one, two] = [folders.create(), folders.create()];
    folders.remove(one, 1);
    expect([existsSync(one), existsSync(two)]).toEqual([false, true]);
    folders.removeAll();
    expect(existsSync(two)).toBe(false);
  });

  test("of a node that is gone are removed by the next, with the worker that it left behind", async () => {
    const orphan = await endless("worker/main.js");
    const left = leftFolder();
    mkdirSync(join(left, "worker-1"));
    writeFileSync(join(left, `${orphan.pid}.pid`), "");
    const ended = once(orphan, "exit");
    new ScratchFolders(LATER_MS).removeAll();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(existsSync(left)).toBe(false);
  });

  test("of a node that runs are left alone", () => {
    const running = new ScratchFolders(LATER_MS);
    const folder = running.create();
    new ScratchFolders(LATER_MS).removeAll();
    expect(existsSync(folder)).toBe(true);
    running.removeAll();
  });

  test("of a node that may be just starting are left alone", () => {
    const left = leftFolder();
    new ScratchFolders(Date.now()).removeAll();
    expect(existsSync(left)).toBe(true);
  });

  test("are made again when a cleaner of temporary files took the node's own", () => {
    const folders = new ScratchFolders(LATER_MS);
    rmSync(dirname(folders.create()), { recursive: true });
    expect(existsSync(folders.create())).toBe(true);
    folders.removeAll();
  });

  test("do not name a process for killing that is not a worker", async () => {
    const other = await endless("other.js");
    const left = leftFolder();
    writeFileSync(join(left, `${other.pid}.pid`), "");
    new ScratchFolders(LATER_MS).removeAll();
    expect(existsSync(left)).toBe(false);
    expect(other.kill(0)).toBe(true);
    other.kill("SIGKILL");
  });
});
