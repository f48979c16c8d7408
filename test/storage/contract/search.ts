import { expect } from "vitest";
import type { TaskCountQuery, TaskSearchQuery } from "../../../src/storage/listing.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  DEPLOYMENT,
  endAttempt,
  json,
  key,
  LEASE,
  listAll,
  NOW_MS,
  newTask,
  openLease,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";

const OTHER = "deployment-2";

async function searchAll(
  storage: Storage,
  search: Partial<TaskSearchQuery> = {},
): Promise<string[]> {
  const asked: TaskSearchQuery = { deploymentIds: [DEPLOYMENT, OTHER], limit: 100, ...search };
  const found: string[] = [];
  let before = search.before;
  do {
    const one = { ...asked, ...(before !== undefined && { before }) };
    const page = await storage.searchTasks(one);
    expect(page.tasks.length).toBeLessThanOrEqual(asked.limit);
    // The keys are those of the same page.
    const keys = page.tasks.map(({ deploymentId, taskId }) => ({ deploymentId, taskId }));
    expect(await storage.searchKeys(one)).toEqual({ keys, nextBefore: page.nextBefore });
    found.push(...taskIds(page.tasks));
    before = page.nextBefore;
  } while (before !== undefined);
  return found;
}

/** Fails a new task of each id with its message. */
async function fail(storage: Storage, messages: Readonly<Record<string, string>>): Promise<void> {
  await openLease(storage);
  const ids = Object.keys(messages);
  await submit(storage, ...ids.map((taskId) => newTask(taskId, { leaseId: LEASE })));
  for (const [taskId, message] of Object.entries(messages)) {
    const failure = { reason: "error", code: "internal", message } as const;
    const attempt = { ...key(taskId), leaseId: LEASE, attempt: 1 };
    await endAttempt(storage, attempt, { status: "failure", failure });
  }
}

export function searchContract({ it }: Contract): void {
  it("searches the deployments that are named and no other, newest first, as a read gives them", async (storage) => {
    await submit(
      storage,
      newTask("a"),
      newTask("b", { deploymentId: OTHER }),
      newTask("c"),
      newTask("d", { deploymentId: "deployment-3" }),
    );
    for (const limit of [1, 2, 3, 4]) {
      expect(await searchAll(storage, { limit }), `${limit} a page`).toEqual(["c", "b", "a"]);
    }
    expect(await searchAll(storage, { deploymentIds: [OTHER] })).toEqual(["b"]);
    expect(await searchAll(storage, { deploymentIds: [] })).toEqual([]);
    const { tasks } = await storage.searchTasks({ deploymentIds: [DEPLOYMENT], limit: 1 });
    expect(tasks).toEqual([
      { ...(await storage.getTask(key("c"))), argumentsPreview: '{"taskId":"c"}' },
    ]);
  });

  it("searches between two ids, the first included and the second not", async (storage) => {
    await submit(storage, ...["a", "b", "c", "d"].map((taskId) => newTask(taskId)));
    expect(await searchAll(storage, { from: "b", before: "d" })).toEqual(["c", "b"]);
  });

  it("searches tasks of an endpoint in any of several states", async (storage) => {
    await fail(storage, { failed: "no" });
    const running = ["done", "given-up", "running"];
    await submit(
      storage,
      ...running.map((taskId) => newTask(taskId, { leaseId: LEASE })),
      newTask("delayed", { runAtMs: NOW_MS + 1_000 }),
      newTask("waiting", { endpoint: "other", deploymentId: OTHER }),
    );
    await endAttempt(storage, { ...key("done"), leaseId: LEASE, attempt: 1 }, success(1));
    const attempt = { ...key("given-up"), leaseId: LEASE, attempt: 1 };
    await endAttempt(storage, attempt, { status: "cancelled" });
    const of = (...statuses: NonNullable<TaskSearchQuery["statuses"]>) =>
      searchAll(storage, { statuses, limit: 1 });
    expect(await of("failure", "cancelled")).toEqual(["given-up", "failed"]);
    expect(await of("cancelled")).toEqual(["given-up"]);
    expect(await of("queued", "running")).toEqual(["waiting", "running", "delayed"]);
    expect(await of("running")).toEqual(["running"]);
    expect(await of("success", "queued")).toEqual(["waiting", "done", "delayed"]);
    expect(await searchAll(storage, { endpoint: "other" })).toEqual(["waiting"]);
  });

  it("searches the messages of failures as text, whatever stands in them", async (storage) => {
    await fail(storage, {
      a: "Disk FULL on /data",
      b: 'said "100% \\ _"',
      c: "first\nnumber",
      d: "\u0000 and \ud800 alone",
      e: "Größe",
    });
    const having = (errorContains: string) => searchAll(storage, { errorContains });
    expect(await having("disk full")).toEqual(["a"]);
    expect(await having('"100% \\ _"')).toEqual(["b"]);
    expect(await having("NUMBER")).toEqual(["c"]);
    expect(await having("nnumber")).toEqual([]);
    expect(await having("AND")).toEqual(["d"]);
    expect(await having("größe")).toEqual(["e"]);
    expect(await having("%")).toEqual(["b"]);
    expect(await having("internal")).toEqual([]);
    expect(await searchAll(storage, { errorContains: "full", statuses: ["cancelled"] })).toEqual(
      [],
    );
  });

  it("searches ids, endpoints, arguments and failures for one text, in either case", async (storage) => {
    await fail(storage, { "id-77": 'Disk "FULL"', b: "no" });
    const payload = (json: string) => ({ json, files: [] });
    await submit(
      storage,
      newTask("c", { arguments: payload('{"city":"Nürnberg","say":"\\"hi\\""}') }),
      newTask("d", { arguments: payload(`{"first":"Alpha","rest":"${"x".repeat(5_000)}omega"}`) }),
      newTask("e", { endpoint: "Resize", deploymentId: OTHER }),
    );
    const having = (text: string) => searchAll(storage, { text });
    expect(await having("d-77")).toEqual(["id-77"]);
    expect(await having('disk "full"')).toEqual(["id-77"]);
    expect(await having("Nürn")).toEqual(["c"]);
    expect(await having('"hi"')).toEqual(["c"]);
    expect(await having('"city":"n')).toEqual(["c"]);
    expect(await having("alpha")).toEqual(["d"]);
    expect(await having("omega")).toEqual([]);
    expect(await having("resize")).toEqual(["e"]);
    expect(await having("reason")).toEqual([]);
    expect(await having("%")).toEqual([]);
    expect(await searchAll(storage, { text: "full", statuses: ["queued"] })).toEqual([]);
  });

  it("shows how arguments begin, also of a task that has ended and of arguments without end", async (storage) => {
    await openLease(storage);
    const json = `{"text":"${"😀".repeat(5_000)}"}`;
    await submit(
      storage,
      newTask("large", { leaseId: LEASE, arguments: { json, files: [] } }),
      newTask("small", { arguments: { json: '{"a":1}', files: [] } }),
    );
    const previews = async () =>
      (await storage.searchTasks({ deploymentIds: [DEPLOYMENT], limit: 9 })).tasks.map(
        ({ argumentsPreview }) => argumentsPreview,
      );
    const before = await previews();
    expect(before[0]).toBe('{"a":1}');
    expect(before[1]).toMatch(/^\{"text":"😀{90}/u);
    expect(before[1]?.length).toBeLessThan(500);
    await endAttempt(storage, { ...key("large"), leaseId: LEASE, attempt: 1 }, success(1));
    await storage.cancelTask({ ...key("small"), nowMs: NOW_MS });
    expect(await previews()).toEqual(before);
  });

  it("tells queued tasks with a time to come from those that could start", async (storage) => {
    await submit(
      storage,
      newTask("soon", { runAtMs: NOW_MS + 1_000 }),
      newTask("waiting"),
      newTask("later", { runAtMs: NOW_MS + 9_000, deploymentId: OTHER }),
    );
    const waiting = (scheduled: boolean, nowMs: number) =>
      searchAll(storage, { waiting: { scheduled, nowMs } });
    expect(await waiting(true, NOW_MS)).toEqual(["soon", "later"]);
    expect(await waiting(false, NOW_MS)).toEqual(["waiting"]);
    expect(await waiting(true, NOW_MS + 1_000)).toEqual(["later"]);
    expect(await waiting(false, NOW_MS + 1_000)).toEqual(["waiting", "soon"]);
  });

  it("finds what retries a task, waiting or ended", async (storage) => {
    await submit(
      storage,
      newTask("a"),
      newTask("b", { retryOf: "a" }),
      newTask("c", { retryOf: "a" }),
      newTask("d", { retryOf: "b" }),
    );
    await storage.cancelTask({ ...key("c"), nowMs: NOW_MS });
    const retries = (retryOf: string, more: Partial<TaskSearchQuery> = {}) =>
      searchAll(storage, { retryOf, limit: 1, ...more });
    expect(await retries("a")).toEqual(["c", "b"]);
    expect(await retries("a", { statuses: ["queued"] })).toEqual(["b"]);
    expect(await retries("a", { deploymentIds: [OTHER] })).toEqual([]);
    expect(await retries("d")).toEqual([]);
  });

  it("counts tasks by state, as a filter and ids restrict them", async (storage) => {
    await fail(storage, { f1: "disk full", f2: "no" });
    await submit(
      storage,
      ...["done-1", "done-2", "running"].map((taskId) => newTask(taskId, { leaseId: LEASE })),
      newTask("delayed", { runAtMs: NOW_MS + 1_000 }),
      newTask("waiting", { endpoint: "other", deploymentId: OTHER }),
      newTask("cancelled"),
      newTask("elsewhere", { deploymentId: "deployment-3" }),
    );
    for (const taskId of ["done-1", "done-2"]) {
      await endAttempt(storage, { ...key(taskId), leaseId: LEASE, attempt: 1 }, success(1));
    }
    await storage.cancelTask({ ...key("cancelled"), nowMs: NOW_MS });
    const counts = async (more: Partial<TaskCountQuery> = {}) => {
      const asked = { deploymentIds: [DEPLOYMENT, OTHER], nowMs: NOW_MS, ...more };
      const states = Object.entries(await storage.countStates(asked));
      expect(states.some(([, { isPartial }]) => isPartial)).toBe(false);
      return Object.fromEntries(
        states.flatMap(([state, { count }]) => (count > 0 ? [[state, count]] : [])),
      );
    };
    const [scheduled, queued, running, cancelled] = [1, 1, 1, 1];
    const all = { scheduled, queued, running, success: 2, failure: 2, cancelled };
    expect(await counts()).toEqual(all);
    expect(await counts({ nowMs: NOW_MS + 1_000 })).toEqual({
      ...all,
      queued: 2,
      scheduled: undefined,
    });
    expect(await counts({ deploymentIds: [OTHER] })).toEqual({ queued });
    expect(await counts({ deploymentIds: [] })).toEqual({});
    expect(await counts({ endpoint: "other" })).toEqual({ queued });
    expect(await counts({ text: "DONE" })).toEqual({ success: 2 });
    expect(await counts({ errorContains: "full" })).toEqual({ failure: 1 });
    expect(await counts({ from: "done-2", before: "f2" })).toEqual({ success: 1, failure: 1 });
  });

  it("counts as far as it looks, and says so", async (storage) => {
    const many = Array.from({ length: 11_000 }, (_, index) =>
      newTask(`t${String(index).padStart(5, "0")}`, { queueLimit: 20_000 }),
    );
    for (let first = 0; first < many.length; first += 1_000) {
      await submit(storage, ...many.slice(first, first + 1_000));
    }
    const { queued, running, failure } = await storage.countStates({
      deploymentIds: [DEPLOYMENT],
      nowMs: NOW_MS,
    });
    expect(queued).toEqual({ count: 10_000, isPartial: true });
    expect(running.count).toBe(0);
    expect(failure).toEqual({ count: 0, isPartial: false });
  });

  it("finds nothing by U+0000, which is stored in JSON alone", async (storage) => {
    await submit(storage, newTask("a", { key: "ada", tags: ["t"], arguments: json("x\0") }));
    expect(await searchAll(storage, { text: "x\0" })).toEqual(["a"]);
    const parts = [{ endpoint: "\0" }, { key: "ada\0" }, { tags: ["\0"] }];
    for (const part of [...parts, { errorContains: "\0" }, { retryOf: "\0" }]) {
      expect(await searchAll(storage, part), JSON.stringify(part)).toEqual([]);
    }
    for (const part of parts) {
      const asked = { deploymentIds: [DEPLOYMENT], nowMs: NOW_MS, ...part };
      expect((await storage.countStates(asked)).queued.count).toBe(0);
      expect(await listAll(storage, { deploymentId: DEPLOYMENT, limit: 10, ...part })).toEqual([]);
    }
  });

  it("finds what is rare among many of several deployments", async (storage) => {
    const many = Array.from({ length: 12_000 }, (_, index) =>
      newTask(`t${String(index).padStart(5, "0")}`, {
        queueLimit: 20_000,
        deploymentId: index % 3 ? DEPLOYMENT : OTHER,
      }),
    );
    await submit(storage, newTask("a-first", { endpoint: "rare" }));
    for (let first = 0; first < many.length; first += 1_000) {
      await submit(storage, ...many.slice(first, first + 1_000));
    }
    await submit(storage, newTask("z-last", { endpoint: "rare", deploymentId: OTHER }));
    expect(await searchAll(storage, { endpoint: "rare" })).toEqual(["z-last", "a-first"]);
  });
}
