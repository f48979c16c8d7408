import { expect } from "vitest";
import type { TaskSearchQuery } from "../../../src/storage/listing.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  claim,
  DEPLOYMENT,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  listAll,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";

const OTHER = "deployment-2";

async function search(storage: Storage, asked: Partial<TaskSearchQuery>): Promise<string[]> {
  const all = { deploymentIds: [DEPLOYMENT, OTHER], limit: 100, ...asked };
  return taskIds((await storage.searchTasks(all)).tasks);
}

export function tagsContract({ it }: Contract): void {
  it("keeps the tags of a task in their order until its end, and after it", async (storage) => {
    const tags = ["customer:42", 'say "hi"', "50 %_\\", "größe"];
    const attempt = await startTask(storage, "a", { tags });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "running", tags });
    expect(await endAttempt(storage, attempt, success(1))).toMatchObject({ tags });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "success", tags });
    await submit(storage, newTask("b", { tags }), newTask("c"));
    expect(await storage.cancelTask({ ...key("b"), nowMs: NOW_MS })).toMatchObject({
      task: { tags },
    });
    const claimed = await claim(storage);
    expect(claimed.map(({ task }) => task.tags)).toEqual([undefined]);
  });

  it("finds the tasks that have all of the tags, in any state and of any deployment", async (storage) => {
    const ended = await startTask(storage, "a", { tags: ["x", "y"] });
    await endAttempt(storage, ended, { status: "failure", failure: FAILURE });
    await submit(
      storage,
      newTask("b", { tags: ["x"], deploymentId: OTHER }),
      newTask("c", { tags: ["y", "x", "z"], endpoint: "other" }),
      newTask("d"),
      // Parts of tags are no tags.
      newTask("e", { tags: ["xy", "x y", "x%"] }),
    );
    expect(await search(storage, { tags: ["x"] })).toEqual(["c", "b", "a"]);
    expect(await search(storage, { tags: ["x", "y"] })).toEqual(["c", "a"]);
    expect(await search(storage, { tags: ["X"] })).toEqual([]);
    expect(await search(storage, { tags: ["x"], endpoint: "other" })).toEqual(["c"]);
    expect(await search(storage, { tags: ["y"], statuses: ["failure"] })).toEqual(["a"]);
    expect(await search(storage, { tags: ["y"], errorContains: "empty" })).toEqual(["a"]);
    const listing = { deploymentId: DEPLOYMENT, limit: 1, tags: ["x"] };
    expect(taskIds(await listAll(storage, listing))).toEqual(["c", "a"]);
    expect(taskIds(await listAll(storage, { ...listing, status: "queued" }))).toEqual(["c"]);
  });

  it("finds retries of a task by their tags, too", async (storage) => {
    const retryOf = "first";
    await submit(storage, newTask("a", { retryOf, tags: ["x"] }), newTask("b", { retryOf }));
    expect(await search(storage, { retryOf, tags: ["x"] })).toEqual(["a"]);
    expect(await search(storage, { retryOf })).toEqual(["b", "a"]);
  });

  it("counts those with the tags in each state", async (storage) => {
    await openLease(storage);
    const tags = ["x"];
    await submit(
      storage,
      newTask("queued", { tags }),
      newTask("later", { tags, runAtMs: NOW_MS + 9 }),
      newTask("runs", { tags, leaseId: LEASE }),
      newTask("other", { tags: ["y"] }),
      newTask("untagged"),
    );
    await submit(storage, newTask("won", { tags, leaseId: LEASE }));
    await endAttempt(storage, { ...key("won"), leaseId: LEASE, attempt: 1 }, success(1));
    await submit(storage, newTask("off", { tags }));
    await storage.cancelTask({ ...key("off"), nowMs: NOW_MS });
    const one = { count: 1, isPartial: false };
    expect(
      await storage.countStates({ deploymentIds: [DEPLOYMENT, OTHER], nowMs: NOW_MS, tags }),
    ).toEqual({
      ...{ scheduled: one, queued: one, running: one, success: one, cancelled: one },
      failure: { count: 0, isPartial: false },
    });
  });

  it("gives a task that waits other tags, or none", async (storage) => {
    await submit(storage, newTask("a", { tags: ["x"] }), newTask("b", { tags: ["x"] }));
    const update = (taskId: string, tags: readonly string[]) =>
      storage.updateTask({ ...key(taskId), change: { tags }, nowMs: NOW_MS });
    expect(await update("a", ["y", "z"])).toMatchObject({ task: { tags: ["y", "z"] } });
    expect((await update("b", []))?.task.tags).toBeUndefined();
    expect(await search(storage, { tags: ["x"] })).toEqual([]);
    expect(await search(storage, { tags: ["z"] })).toEqual(["a"]);
    await storage.updateTask({ ...key("a"), change: { priority: 3 }, nowMs: NOW_MS });
    expect(await storage.getTask(key("a"))).toMatchObject({ priority: 3, tags: ["y", "z"] });
  });
}
