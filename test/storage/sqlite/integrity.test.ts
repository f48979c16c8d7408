import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, statSync, truncateSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { examineSqlite } from "../../../src/storage/sqlite/integrity.ts";
import { json, key, newTask, submit } from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

const SUBMIT_FOREVER = fileURLToPath(new URL("./submit-forever.ts", import.meta.url));

let folder: TestFolder;

beforeEach(() => {
  folder = new TestFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** A file with tasks that a process has closed. */
async function filled(): Promise<string> {
  await using storage = await openSqlite(folder.file());
  const tasks = Array.from({ length: 200 }, (_, number) =>
    newTask(`t${number}`, { arguments: json("x".repeat(1_000)) }),
  );
  await submit(storage, ...tasks);
  return folder.file();
}

/** Overwrites pages in the middle of a file. */
function spoil(path: string): void {
  const file = openSync(path, "r+");
  const { size } = statSync(path);
  writeSync(file, Buffer.alloc(32_768, 0x5a), 0, 32_768, Math.floor(size / 2));
  closeSync(file);
}

async function refusal(path: string): Promise<string> {
  return openSqlite(path).then(
    async (storage) => {
      await storage[Symbol.asyncDispose]();
      return "opened";
    },
    (err: unknown) => String(err),
  );
}

test("refuses to start on a file that was cut short, and says what to do", async () => {
  const path = await filled();
  expect(await refusal(path)).toBe("opened");
  truncateSync(path, statSync(path).size - 4_096);
  expect(await refusal(path)).toMatch(/is damaged \(it has \d+ bytes of \d+\).*admin restore/);
  truncateSync(path, 50_000);
  expect(await refusal(path)).toMatch(/is damaged/);
});

test("looks at all pages after a crash, and refuses to start where one is not whole", async () => {
  const path = await filled();
  const child = spawn(process.execPath, [SUBMIT_FOREVER, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
  spoil(path);
  expect(examineSqlite(path)).toMatch(/is damaged .*recover/);
  expect(await refusal(path)).toMatch(/is damaged .*admin restore/);
});

test("stops using a file that is cut short while it is open", async () => {
  const path = await filled();
  await using storage = await openSqlite(path);
  await storage.getTask(key("t1"));
  truncateSync(path, 20_480);
  await expect
    .poll(() => storage.getTask(key("t1")).then(String, (err: unknown) => String(err)), {
      timeout: 10_000,
    })
    .toMatch(/STORAGE_UNAVAILABLE|database does not answer|unavailable/i);
});

test("finds a whole file whole, and a spoiled one damaged, also while it is served", async () => {
  const path = await filled();
  expect(examineSqlite(path)).toBeUndefined();
  expect(examineSqlite(folder.file("none.db"))).toBeUndefined();
  await using running = await openSqlite(path);
  await submit(running, newTask("another"));
  expect(examineSqlite(path)).toBeUndefined();
});
