import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import {
  claim,
  endAttempt,
  key,
  newTask,
  openLease,
  startTask,
  submit,
  success,
} from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

/** What another program does to the file while it is served. */
function change(path: string, sql: string): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(sql);
  db.close();
}

it("shows what another program changed of a task that waits, and does not claim it", async () => {
  using folder = new TestFolder();
  await using storage = await openSqlite(folder.file());
  await openLease(storage);
  await submit(storage, newTask("a"), newTask("b"));
  change(folder.file(), "UPDATE tasks SET status = 5, finished_at_ms = 1 WHERE task_id = 'a'");
  expect(await storage.getTask(key("a"))).toMatchObject({ status: "cancelled" });
  expect(await claim(storage)).toMatchObject([{ task: { taskId: "b" } }]);
});

it("answers the end of a task that another program changed while it ran as it then is", async () => {
  using folder = new TestFolder();
  await using storage = await openSqlite(folder.file());
  const running = await startTask(storage, "a");
  change(folder.file(), "UPDATE tasks SET priority = 9 WHERE task_id = 'a'");
  const ended = await endAttempt(storage, running, success(1));
  expect(ended).toMatchObject({ status: "success", priority: 9 });
  expect(await storage.getTask(key("a"))).toEqual(ended);
});
