import { expect } from "vitest";
import type { TaskSearchQuery } from "../../../src/storage/listing.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  DEPLOYMENT,
  endAttempt,
  key,
  LEASE,
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
  let page = await storage.searchTasks(asked);
  for (;;) {
    expect(page.tasks.length).toBeLessThanOrEqual(asked.limit);
    found.push(...taskIds(page.tasks));
    if (page.nextBefore === undefined) {
      return found;
    }
    page = await storage.searchTasks({ ...asked, before: page.nextBefore });
  }
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
    expect(tasks).toEqual([await storage.getTask(key("c"))]);
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
