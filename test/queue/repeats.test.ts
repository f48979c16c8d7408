/** Submits that are refused unless they repeat one, as those under a spent budget are, on both databases. */
import { describe, expect, it } from "vitest";
import { problem } from "../../src/errors.ts";
import type { Slot } from "../../src/pool/pool.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import type { SubmissionOptions } from "../../src/queue/submission.ts";
import { DATABASES } from "../server/rpc/databases.ts";
import { localFiles } from "../storage/files/local.ts";
import { DEPLOYMENT, ENDPOINT, LEASE } from "../storage/fixtures.ts";
import { newSchema } from "../storage/postgres/databases.ts";
import { queueOn } from "./queues.ts";

const ENDPOINT_OF_ONE = {
  ...{ name: ENDPOINT, kind: "task", priority: 0, queueLimit: 1, retentionMs: 60_000 },
} as EndpointManifest;

const REFUSAL = problem("BUDGET_SPENT", "the budget is spent");

describe.each(DATABASES)("a submit with a refusal on $database", ({ open }) => {
  /** A queue with room for one task. */
  async function room() {
    const storage = await open(newSchema());
    const slot = { workerId: LEASE, release() {} } as unknown as Slot;
    const queue = queueOn(storage, { keeper: localFiles().task, slot, retentionMs: 60_000 });
    const asked = (key: string, options: SubmissionOptions = {}, json = "1") => ({
      endpoint: ENDPOINT_OF_ONE,
      payload: { json, files: [] },
      options: { idempotency: { key, digest: json }, ...options },
    });
    const submit = (...call: Parameters<typeof asked>) => {
      const { endpoint, payload, options } = asked(...call);
      return queue.submit(endpoint, payload, options);
    };
    return {
      ...{ storage, queue, asked, submit },
      count: async () => {
        const listing = { deploymentId: DEPLOYMENT, limit: 10 };
        return (await storage.listTasks(listing)).tasks.length;
      },
      async [Symbol.asyncDispose]() {
        await queue.stop();
        await storage[Symbol.asyncDispose]();
      },
    };
  }

  it("is answered with the task of its key, though the queue is full, and stores nothing new", async () => {
    await using it = await room();
    const { task } = await it.submit("one");
    for (const refusal of [undefined, REFUSAL]) {
      expect(await it.submit("one", { refusal })).toMatchObject({
        replayed: true,
        task: { taskId: task.taskId },
      });
    }
    const full = it.submit("two");
    await expect(full).rejects.toMatchObject({ reason: "QUEUE_FULL" });
    await expect(it.submit("one", { refusal: REFUSAL }, "2")).rejects.toMatchObject({
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
    for (const options of [{}, { webhook: "gone" }, { idempotency: undefined }]) {
      await expect(it.submit("two", { refusal: REFUSAL, ...options })).rejects.toBe(REFUSAL);
    }
    expect(await it.count()).toBe(1);
  });

  it("is refused where its task has failed, so that another one would run", async () => {
    await using it = await room();
    const { task } = await it.submit("one");
    await it.queue.cancel({ taskId: task.taskId }, false);
    await expect(it.submit("one", { refusal: REFUSAL })).rejects.toBe(REFUSAL);
    const always = { key: "one", digest: "1", replay: "always" } as const;
    expect(await it.submit("one", { refusal: REFUSAL, idempotency: always })).toMatchObject({
      replayed: true,
      task: { taskId: task.taskId },
    });
    expect(await it.count()).toBe(1);
  });

  it("decides for itself among many", async () => {
    await using it = await room();
    const { task } = await it.submit("one");
    const refusal = REFUSAL;
    const outcomes = await it.queue.submitAll([
      it.asked("two", { refusal }),
      it.asked("one", { refusal }),
      it.asked("two", { refusal }),
    ]);
    expect(outcomes).toEqual([
      REFUSAL,
      expect.objectContaining({
        replayed: true,
        task: expect.objectContaining({ taskId: task.taskId }),
      }),
      REFUSAL,
    ]);
    expect(await it.count()).toBe(1);
  });
});
