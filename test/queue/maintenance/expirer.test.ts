import { expect, it } from "vitest";
import { Expirer } from "../../../src/queue/maintenance/expirer.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { newTask, submit } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** An expirer at work, and the tasks that it has failed. */
function expirerOn(storage: Storage) {
  const failed: Task[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const expirer = new Expirer({
    storage,
    log: LOG as never,
    now: Date.now,
    onExpired(tasks) {
      failed.push(...tasks);
      for (const { count, resolve } of waiting) {
        if (failed.length >= count) {
          resolve();
        }
      }
    },
  });
  const until = (count: number) => new Promise<void>((resolve) => waiting.push({ count, resolve }));
  return { expirer, failed, until, [Symbol.asyncDispose]: () => expirer[Symbol.asyncDispose]() };
}

it("fails a task at the deadline that it was told of", async () => {
  await using storage = await openSqlite(":memory:");
  await using at = expirerOn(storage);
  const startByMs = Date.now() + 100;
  await submit(storage, newTask("a", { startByMs }));
  at.expirer.expect(startByMs);
  await at.until(1);
  expect(at.failed).toMatchObject([{ taskId: "a", status: "failure" }]);
  expect(at.failed[0]?.finishedAtMs).toBeGreaterThanOrEqual(startByMs);
});

it("finds deadlines that have passed, however many", async () => {
  await using storage = await openSqlite(":memory:");
  const startByMs = Date.now() - 1;
  const tasks = Array.from({ length: 1_200 }, (_, index) =>
    newTask(`t${index}`, { startByMs, queueLimit: 2_000 }),
  );
  await submit(storage, ...tasks);
  await using at = expirerOn(storage);
  void at.expirer.look();
  await at.until(1_200);
  expect(new Set(at.failed.map(({ taskId }) => taskId)).size).toBe(1_200);
});

it("goes on after the storage did not answer", async () => {
  await using storage = await openSqlite(":memory:");
  let refused = 0;
  const unreliable = Object.create(storage, {
    expireTasks: {
      value: (parameters: Parameters<Storage["expireTasks"]>[0]) => {
        refused += 1;
        return refused === 1 ? Promise.reject(new Error("away")) : storage.expireTasks(parameters);
      },
    },
  }) as Storage;
  await using at = expirerOn(unreliable);
  await submit(storage, newTask("a", { startByMs: Date.now() - 1 }));
  await at.expirer.look();
  void at.expirer.look();
  await at.until(1);
  expect(refused).toBeGreaterThan(1);
});
