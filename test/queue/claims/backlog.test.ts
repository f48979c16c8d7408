import { expect, it } from "vitest";
import type { Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { Backlog } from "../../../src/queue/claims/backlog.ts";
import type { ClaimedTask } from "../../../src/storage/storage.ts";
import { asStored } from "../../../src/storage/stored.ts";
import { DEPLOYMENT, ENDPOINT, newTask } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { LOG } from "../queues.ts";

/** A backlog that serves one endpoint, and workers with this many free slots each. */
async function serving(
  free: Readonly<Record<string, number>>,
  isPaused = () => false,
  onDue = () => {},
) {
  const storage = await openSqlite(":memory:");
  const slots = Object.entries(free).flatMap(([workerId, count]) =>
    Array.from({ length: count }, () => ({ workerId, endpoint: ENDPOINT }) as Slot),
  );
  const backlog = new Backlog(
    {
      deploymentId: DEPLOYMENT,
      storage,
      log: LOG,
      now: Date.now,
      isPaused,
      pool: { reserveAll: (_, limit) => slots.slice(0, limit) },
    },
    onDue,
  );
  backlog.serve([{ name: ENDPOINT, kind: "task" } as EndpointManifest]);
  const dispose = async () => {
    backlog[Symbol.dispose]();
    await storage[Symbol.asyncDispose]();
  };
  return { backlog, [Symbol.asyncDispose]: dispose };
}

function claimed(taskId: string, leaseId: string): ClaimedTask {
  const task = newTask(taskId);
  return { task: asStored(task, true), leaseId, arguments: task.arguments };
}

it("asks for as many tasks as each worker has slots free", async () => {
  await using begun = await serving({ a: 2, b: 1 });
  expect(begun.backlog.reserve()).toMatchObject({
    claims: [
      { endpoint: ENDPOINT, leaseId: "a", limit: 2 },
      { endpoint: ENDPOINT, leaseId: "b", limit: 1 },
    ],
    isShort: false,
  });
});

it("asks for none where no slot is free, and says that tasks may be waiting", async () => {
  await using begun = await serving({});
  expect(begun.backlog.reserve()).toMatchObject({ claims: [], isShort: true });
  expect(begun.backlog.has(ENDPOINT)).toBe(true);
});

it("asks for none of a paused endpoint, whose submits have to wait, until it is served anew", async () => {
  let paused = true;
  await using begun = await serving({ a: 2 }, () => paused);
  const { backlog } = begun;
  backlog.came(ENDPOINT);
  expect(backlog.reserve()).toMatchObject({ claims: [], isShort: false });
  expect([backlog.isEmpty, backlog.has(ENDPOINT)]).toEqual([true, true]);
  paused = false;
  backlog.serve([{ name: ENDPOINT, kind: "task" } as EndpointManifest]);
  expect(backlog.reserve().claims).toEqual([{ endpoint: ENDPOINT, leaseId: "a", limit: 2 }]);
});

it("gives a task a slot of the worker that it was claimed for, and each slot once", async () => {
  await using begun = await serving({ a: 1, b: 1 });
  const reserved = begun.backlog.reserve();
  const tasks = [claimed("1", "b"), claimed("2", "a"), claimed("3", "a")];
  const assigned = begun.backlog.assign(tasks, reserved);
  expect(assigned.map(({ slot }) => slot?.workerId)).toEqual(["b", "a", undefined]);
  expect([...reserved.slots.values()].flat()).toEqual([]);
});

it("keeps an endpoint while claims find as many tasks as they ask for", async () => {
  await using begun = await serving({ a: 1 });
  const { backlog } = begun;
  const more = backlog.answered(backlog.reserve(), { tasks: [claimed("1", "a")], later: [] });
  expect([more, backlog.has(ENDPOINT)]).toEqual([true, true]);
  const none = backlog.answered(backlog.reserve(), { tasks: [], later: [] });
  expect([none, backlog.isEmpty]).toEqual([false, true]);
});

it("keeps an endpoint of which a task came while a claim was under way", async () => {
  await using begun = await serving({ a: 1 });
  const { backlog } = begun;
  const reserved = backlog.reserve();
  backlog.came(ENDPOINT);
  expect(backlog.answered(reserved, { tasks: [], later: [] })).toBe(false);
  expect(backlog.has(ENDPOINT)).toBe(true);
});

it("looks again when the rate of a key lets its next task start", async () => {
  const due = Promise.withResolvers<void>();
  await using begun = await serving({ a: 1 }, undefined, due.resolve);
  const { backlog } = begun;
  const later = [{ endpoint: ENDPOINT, inMs: 20 }];
  expect(backlog.answered(backlog.reserve(), { tasks: [], later })).toBe(false);
  expect(backlog.isEmpty).toBe(true);
  await due.promise;
  expect(backlog.reserve().claims).toMatchObject([{ endpoint: ENDPOINT, limit: 1 }]);
});

it("looks again for tasks that run in batches as well, which wait for no others then", async () => {
  const due = Promise.withResolvers<void>();
  await using begun = await serving({ a: 1 }, undefined, due.resolve);
  const { backlog } = begun;
  const batch = { maxSize: 4, maxWaitMs: 60_000 };
  backlog.serve([{ name: ENDPOINT, kind: "task", batch } as EndpointManifest]);
  const later = [{ endpoint: ENDPOINT, inMs: 20 }];
  backlog.answered(backlog.reserve(), { tasks: [], later });
  await due.promise;
  expect(backlog.gathers(ENDPOINT)).toBe(false);
  expect(backlog.reserve().claims).toMatchObject([{ endpoint: ENDPOINT, limit: 4 }]);
});

it("looks anew for a revision that begins to serve while a claim is under way", async () => {
  await using begun = await serving({ a: 1 });
  const { backlog } = begun;
  const reserved = backlog.reserve();
  backlog.serve([{ name: ENDPOINT, kind: "task" } as EndpointManifest]);
  expect(backlog.answered(reserved, { tasks: [], later: [] })).toBe(false);
  expect(backlog.has(ENDPOINT)).toBe(true);
});

it("has one claim look for tasks without a key, and another one when that failed", async () => {
  await using begun = await serving({ a: 1, b: 1 });
  const { backlog } = begun;
  const endpoint = { name: ENDPOINT, kind: "task", byKey: { concurrency: 2 } };
  backlog.serve([endpoint as EndpointManifest]);
  const asked = (unkeyed: boolean) => ({ byKey: { concurrency: 2, unkeyed } });
  const first = backlog.reserve();
  expect(first.claims).toMatchObject([asked(true), asked(true)]);
  backlog.failed(first);
  const second = backlog.reserve();
  expect(second.claims).toMatchObject([asked(true), asked(true)]);
  expect(
    backlog.answered(second, { tasks: [claimed("1", "a"), claimed("2", "b")], later: [] }),
  ).toBe(true);
  const third = backlog.reserve();
  expect(third.claims).toMatchObject([asked(false), asked(false)]);
  backlog.failed(third);
  expect(backlog.reserve().claims).toMatchObject([asked(false), asked(false)]);
  backlog.unkeyed(ENDPOINT);
  expect(backlog.reserve().claims).toMatchObject([asked(true), asked(true)]);
});

it("takes in new tasks that are due, and of endpoints that it serves", async () => {
  await using begun = await serving({ a: 1 });
  const { backlog } = begun;
  backlog.answered(backlog.reserve(), { tasks: [], later: [] });
  const later = newTask("later", { runAtMs: Date.now() + 60_000 });
  expect(backlog.add([later])).toEqual([]);
  expect(backlog.isEmpty).toBe(true);
  const other = newTask("other", { endpoint: "other" });
  expect(backlog.add([other, newTask("now")])).toEqual([
    ["other", undefined],
    [ENDPOINT, undefined],
  ]);
  expect([backlog.has("other"), backlog.has(ENDPOINT)]).toEqual([false, true]);
});

it("forgets the endpoints that the revision lacks which serves now", async () => {
  await using begun = await serving({ a: 1 });
  begun.backlog.serve([]);
  expect(begun.backlog.isEmpty).toBe(true);
  expect(begun.backlog.find(ENDPOINT)).toBeUndefined();
});
