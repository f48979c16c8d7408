/** Tasks in a storage alone, without a node: what moves them, in batches of a given size. */
import type { Attempt, NewTask, Storage } from "../src/storage/storage.ts";
import { asStored } from "../src/storage/stored.ts";
import { createIdSource } from "../src/tasks/id.ts";
import type { Task } from "../src/tasks/task.ts";

export const DEPLOYMENT = "01k9zx5v4d3qh8m2c7t6b1n0aw";
const ENDPOINT = "noop";
const LEASE = "01k9zx5v4d3qh8m2c7t6b1n0ax";
/** Longer than the run. */
const LEASE_MS = 86_400_000;
export const PAYLOAD = { json: '{"input":{"number":1,"text":"some words"}}', files: [] };
const newId = createIdSource();

/** How tasks come to run: in a slot that is free as they are submitted, or by a claim. */
export const WAYS = ["submit, end", "submit, claim, end"] as const;
export type Way = (typeof WAYS)[number];

/** Tasks in a storage: each step submits a batch, claims those that wait, and ends those that run. */
export class StoredTasks implements AsyncDisposable {
  readonly title: string;
  readonly storage: Storage;
  #running: { readonly attempt: Attempt; readonly task: Task }[] = [];

  private constructor(title: string, storage: Storage) {
    this.title = title;
    this.storage = storage;
  }

  static async start(title: string, storage: Storage): Promise<StoredTasks> {
    await storage.start();
    await storage.openLease({
      leaseId: LEASE,
      owner: "bench",
      nowMs: Date.now(),
      ttlMs: LEASE_MS,
    });
    return new StoredTasks(title, storage);
  }

  /** `keptMs`: how long tasks are kept. Default: longer than the run. */
  async step(way: Way, size: number, keptMs = LEASE_MS): Promise<void> {
    const nowMs = Date.now();
    const waits = way === "submit, claim, end";
    const tasks = Array.from({ length: size }, () =>
      newTask(nowMs, keptMs, waits ? undefined : LEASE),
    );
    const claims = [{ endpoint: ENDPOINT, leaseId: LEASE, limit: size }];
    const [claimed] = await Promise.all([
      waits ? this.storage.claimTasks({ deploymentId: DEPLOYMENT, nowMs, claims }) : { tasks: [] },
      ...tasks.map((task) => this.storage.submitTasks({ tasks: [task] })),
      this.end(),
    ]);
    const started = waits
      ? claimed.tasks.map(({ task }) => task)
      : tasks.map((task) => asStored(task, true));
    this.#running = started.map((task) => {
      const { deploymentId, taskId, attempt } = task;
      return { task, attempt: { deploymentId, taskId, leaseId: LEASE, attempt } };
    });
  }

  /** Ends what runs. */
  async end(): Promise<void> {
    const ends = this.#running;
    this.#running = [];
    await Promise.all(
      ends.map(({ attempt, task }) =>
        this.storage.endAttempts({
          nowMs: Date.now(),
          ends: [{ attempt, task, end: { status: "success", result: PAYLOAD } }],
        }),
      ),
    );
  }

  /** Adds tasks to the queue, all by one transaction. They are not kept beyond their end. */
  async queue(count: number): Promise<void> {
    const nowMs = Date.now();
    const tasks = Array.from({ length: count }, () => newTask(nowMs, 0, undefined));
    await this.storage.submitTasks({ tasks });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.storage[Symbol.asyncDispose]();
  }
}

function newTask(nowMs: number, keptMs: number, leaseId: string | undefined): NewTask {
  return {
    deploymentId: DEPLOYMENT,
    taskId: newId(),
    endpoint: ENDPOINT,
    arguments: PAYLOAD,
    createdAtMs: nowMs,
    runAtMs: nowMs,
    expiresAtMs: nowMs + keptMs,
    retentionMs: keptMs,
    priority: 0,
    queueLimit: 100_000_000,
    ...(leaseId !== undefined && { leaseId }),
  };
}
