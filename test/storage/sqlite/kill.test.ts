import { spawn } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { counts, key } from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

const SUBMIT_FOREVER = fileURLToPath(new URL("./submit-forever.ts", import.meta.url));

/** Lets a process submit, kills it in the middle, and answers the ids that it acknowledged. */
async function submitUntilKilled(path: string, atLeast: number): Promise<string[]> {
  const child = spawn(process.execPath, [SUBMIT_FOREVER, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let written = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written += text;
    if (written.split("\n").length > atLeast) {
      child.kill("SIGKILL");
    }
  });
  await once(child, "close");
  return written.split("\n").slice(0, -1);
}

test("keeps every acknowledged task when the process is killed", async () => {
  using folder = new TestFolder();
  const acknowledged: string[] = [];
  for (const atLeast of [1, 200, 1_000]) {
    const ids = await submitUntilKilled(folder.file(), atLeast);
    expect(ids.length).toBeGreaterThanOrEqual(atLeast);
    acknowledged.push(...ids);
    await using storage = await openSqlite(folder.file());
    const tasks = await Promise.all(acknowledged.map((taskId) => storage.getTask(key(taskId))));
    expect(tasks.filter((task) => task?.status !== "queued")).toEqual([]);
    const [count] = await counts(storage);
    expect(count?.queued).toBeGreaterThanOrEqual(acknowledged.length);
  }
  const db = new DatabaseSync(folder.file());
  expect(db.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  const real = db.prepare("SELECT count(*) AS queued FROM tasks WHERE status = 1").get();
  expect(db.prepare("SELECT queued FROM queue_counts").get()).toEqual(real);
  db.close();
}, 60_000);
