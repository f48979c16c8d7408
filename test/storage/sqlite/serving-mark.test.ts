import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { key, newTask, submit } from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

const SUBMIT_FOREVER = fileURLToPath(new URL("./submit-forever.ts", import.meta.url));

let folder: TestFolder;

beforeEach(() => {
  folder = new TestFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** What the next start warns of. */
async function warningsOf(path: string): Promise<readonly string[]> {
  await using storage = await openSqlite(path);
  return storage.warnings;
}

/** Opens the file as the operator's commands do. */
async function lookInto(path: string): Promise<void> {
  await using storage = new SqliteStorage(path, { ownsQueue: false });
  await storage.start();
}

/** A process that submits until the signal ends it. */
async function serveUntil(signal: NodeJS.Signals): Promise<void> {
  const child = spawn(process.execPath, [SUBMIT_FOREVER, folder.file()], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill(signal);
  await once(child, "close");
}

test("says so when a file was copied from under a process without its log", async () => {
  await using running = await openSqlite(folder.file());
  await submit(running, newTask("a"));
  copyFileSync(folder.file(), folder.file("copy.db"));
  const copy = await openSqlite(folder.file("copy.db"));
  expect(copy.warnings).toEqual([expect.stringContaining("write-ahead log")]);
  expect(await copy.getTask(key("a"))).toBeUndefined();
  await copy[Symbol.asyncDispose]();
  expect(await warningsOf(folder.file("copy.db"))).toEqual([]);
});

test("says nothing of a copy with its log", async () => {
  await using running = await openSqlite(folder.file());
  await submit(running, newTask("a"));
  copyFileSync(folder.file(), folder.file("copy.db"));
  copyFileSync(folder.file("tasks.db-wal"), folder.file("copy.db-wal"));
  await using copy = await openSqlite(folder.file("copy.db"));
  expect(copy.warnings).toEqual([]);
  expect(await copy.getTask(key("a"))).toMatchObject({ status: "queued" });
});

test("says nothing after an orderly end, nor of a new file", async () => {
  expect(await warningsOf(folder.file())).toEqual([]);
  expect(await warningsOf(folder.file())).toEqual([]);
});

test("says nothing after a crash", async () => {
  await serveUntil("SIGKILL");
  expect(await warningsOf(folder.file())).toEqual([]);
});

test("says nothing when the operator looked into the file after a crash", async () => {
  await serveUntil("SIGKILL");
  await lookInto(folder.file());
  expect(await warningsOf(folder.file())).toEqual([]);
});

test("keeps the mark while the operator looks into a file that is served", async () => {
  await using running = await openSqlite(folder.file());
  await lookInto(folder.file());
  copyFileSync(folder.file(), folder.file("copy.db"));
  expect(await warningsOf(folder.file("copy.db"))).toHaveLength(1);
  await submit(running, newTask("a"));
});

test("says nothing when the process exited without closing the file", async () => {
  const storage = new URL("../../../src/storage/sqlite/storage.ts", import.meta.url).href;
  const program = folder.file("exits.mjs");
  writeFileSync(
    program,
    `import { SqliteStorage } from ${JSON.stringify(storage)};
    await new SqliteStorage(${JSON.stringify(folder.file())}).start();
    process.exit(0);`,
  );
  const child = spawn(process.execPath, [program], { stdio: "inherit" });
  expect(await once(child, "close")).toEqual([0, null]);
  expect(await warningsOf(folder.file())).toEqual([]);
});

test("warns of a file whose log was removed after a crash", async () => {
  await serveUntil("SIGKILL");
  rmSync(folder.file("tasks.db-wal"));
  rmSync(folder.file("tasks.db-shm"), { force: true });
  expect(await warningsOf(folder.file())).toHaveLength(1);
  const db = new DatabaseSync(folder.file());
  expect(db.prepare("PRAGMA quick_check(1)").get()).toEqual({ quick_check: "ok" });
  db.close();
});
