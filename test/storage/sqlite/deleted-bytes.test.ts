import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { copyDatabase } from "../../../src/storage/sqlite/backup.ts";
import {
  DEPLOYMENT,
  endAttempt,
  json,
  NOW_MS,
  newTask,
  startTask,
  submit,
  success,
} from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

it("leaves nothing of deleted tasks in the file, nor in a later copy of it", async () => {
  using folder = new TestFolder();
  await using storage = await openSqlite(folder.file());
  // Rows that end move in their pages; long ones have pages of their own.
  const sizes = [40, 300, 900, 3_000, 8_000, 40_000];
  const names = Array.from({ length: 36 }, (_, number) => `task-${number}`);
  for (const [number, taskId] of names.entries()) {
    const size = sizes[number % sizes.length] ?? 0;
    const of = (what: string) => json(`${what} of ${taskId} `.repeat(size / 20));
    const running = await startTask(storage, `ended-${taskId}`, { arguments: of("plugh") });
    await endAttempt(storage, running, success(of("plugh result").json));
    await submit(storage, newTask(`queued-${taskId}`, { arguments: of("plugh") }));
    await submit(storage, newTask(`kept-${taskId}`, { arguments: of("public") }));
  }
  const taskIds = names.flatMap((one) => [`ended-${one}`, `queued-${one}`]);
  await storage.deleteTasks({ deploymentId: DEPLOYMENT, taskIds, nowMs: NOW_MS });
  const copy = folder.file("copy.db");
  await copyDatabase(folder.file(), copy, () => {});
  // Its log is written into the file.
  await storage[Symbol.asyncDispose]();
  for (const path of [copy, folder.file()]) {
    const bytes = readFileSync(path).toString("latin1");
    expect(bytes).not.toContain("plugh");
    expect(bytes).toContain(`public of ${names.at(-1)}`);
  }
});
