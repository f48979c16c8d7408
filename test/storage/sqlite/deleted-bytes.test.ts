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

it("leaves nothing of a deleted task in a later copy of the file", async () => {
  using folder = new TestFolder();
  await using storage = await openSqlite(folder.file());
  // Rows that end move in their pages; long ones have pages of their own.
  for (const [taskId, size] of [
    ["short", 40],
    ["middle", 900],
    ["long", 40_000],
  ] as const) {
    const of = (what: string) => json(`${what} of ${taskId} `.repeat(size / 20));
    const running = await startTask(storage, `ended-${taskId}`, { arguments: of("plugh") });
    await endAttempt(storage, running, success(of("plugh result").json));
    await submit(storage, newTask(`queued-${taskId}`, { arguments: of("plugh") }));
    await submit(storage, newTask(`kept-${taskId}`, { arguments: of("public") }));
  }
  const taskIds = ["short", "middle", "long"].flatMap((one) => [`ended-${one}`, `queued-${one}`]);
  await storage.deleteTasks({ deploymentId: DEPLOYMENT, taskIds, nowMs: NOW_MS });
  const copy = folder.file("copy.db");
  await copyDatabase(folder.file(), copy, () => {});
  const bytes = readFileSync(copy).toString("latin1");
  expect(bytes).not.toContain("plugh");
  expect(bytes).toContain("public of long");
});
