import { afterEach, expect, it, vi } from "vitest";
import { Completer } from "../../../src/queue/completer.ts";
import { Leases } from "../../../src/queue/maintenance/leases.ts";
import { UnservedTasks } from "../../../src/queue/maintenance/unserved-tasks.ts";
import type { TaskFailure } from "../../../src/tasks/task.ts";
import { DEPLOYMENT, key, newTask, submit } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };
const GONE: TaskFailure = { reason: "error", code: "unimplemented", message: "there is no such" };

afterEach(() => vi.useRealTimers());

it("claims those that are not to be failed yet once in a while, not in every round", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  await using storage = await openSqlite(":memory:");
  const common = { storage, log: LOG, now: Date.now };
  await using leases = new Leases({ ...common, onRescued() {} });
  const completer = new Completer({ ...common, onRecorded() {}, onStale() {} });
  let failure: TaskFailure | undefined;
  const refusal = vi.fn(() => failure);
  let ids = 0;
  await using unserved = new UnservedTasks({
    ...common,
    deploymentId: DEPLOYMENT,
    maintenance: { leases },
    completer,
    revisions: { refusal, lacks: () => true },
    newId: () => `lease-${ids++}`,
  });
  await submit(storage, newTask("a"));
  unserved.found();
  await expect.poll(async () => storage.getTask(key("a"))).toMatchObject({ attempt: 1 });
  await expect.poll(() => leases.held).toEqual([]);
  await leases.closed();
  failure = GONE;
  unserved.found();
  await storage.countTasks({ deploymentId: DEPLOYMENT });
  expect([refusal.mock.calls.length, ids]).toEqual([1, 1]);
  vi.advanceTimersByTime(30_000);
  unserved.found();
  await expect
    .poll(async () => storage.getTask(key("a")))
    .toMatchObject({ status: "failure", failure: GONE });
});
