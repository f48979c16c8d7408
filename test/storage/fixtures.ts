/** What the tests of the storage port are made of: one deployment, one endpoint, one clock. */
import type { Payload } from "../../src/protocol/messages.ts";
import type { ClaimByKey } from "../../src/storage/claims-by-key.ts";
import type { AttemptUse } from "../../src/storage/hosting/usage.ts";
import type { TaskListing } from "../../src/storage/listing.ts";
import type {
  Attempt,
  AttemptEnd,
  Claimed,
  ClaimedTask,
  NewTask,
  Storage,
} from "../../src/storage/storage.ts";
import type { Task, TaskFailure } from "../../src/tasks/task.ts";

export const NOW_MS = 1_750_000_000_000;
export const RETENTION_MS = 60_000;
export const TTL_MS = 20_000;
export const DEPLOYMENT = "deployment-1";
export const ENDPOINT = "work";
export const LEASE = "lease-1";

export const FAILURE: TaskFailure = {
  reason: "error",
  code: "invalid_argument",
  message: "the picture is empty",
  violations: [{ field: "picture", description: "has no pixels" }],
};

export function json(value: unknown): Payload {
  return { json: JSON.stringify(value), files: [] };
}

export function newTask(taskId: string, changes: Partial<NewTask> = {}): NewTask {
  return {
    deploymentId: DEPLOYMENT,
    taskId,
    endpoint: ENDPOINT,
    arguments: json({ taskId }),
    createdAtMs: NOW_MS,
    runAtMs: NOW_MS,
    expiresAtMs: NOW_MS + RETENTION_MS,
    retentionMs: RETENTION_MS,
    priority: 0,
    queueLimit: 1_000,
    ...changes,
  };
}

export function key(taskId: string, deploymentId = DEPLOYMENT) {
  return { deploymentId, taskId };
}

export async function submit(storage: Storage, ...tasks: readonly NewTask[]): Promise<void> {
  await storage.submitTasks({ tasks });
}

export function openLease(storage: Storage, leaseId = LEASE, nowMs = NOW_MS): Promise<void> {
  return storage.openLease({ leaseId, owner: "test", nowMs, ttlMs: TTL_MS });
}

export interface ClaimOptions {
  readonly deploymentId?: string;
  readonly endpoint?: string;
  readonly leaseId?: string;
  readonly limit?: number;
  readonly nowMs?: number;
  readonly suspects?: boolean;
  readonly byKey?: ClaimByKey;
}

export async function claim(storage: Storage, options: ClaimOptions = {}): Promise<ClaimedTask[]> {
  return (await claimAndLook(storage, options)).tasks;
}

/** A claim, with what it says of tasks that may start later. */
export function claimAndLook(storage: Storage, options: ClaimOptions): Promise<Claimed> {
  const { deploymentId = DEPLOYMENT, endpoint = ENDPOINT, leaseId = LEASE } = options;
  const { limit = 100, nowMs = NOW_MS, suspects = false, byKey } = options;
  const claims = [{ endpoint, leaseId, limit, byKey }];
  return storage.claimTasks({ deploymentId, nowMs, claims, suspects });
}

/** A task that runs: submitted and claimed under a lease that this opens. */
export async function startTask(
  storage: Storage,
  taskId: string,
  changes: Partial<NewTask> = {},
): Promise<Attempt> {
  await openLease(storage);
  await submit(storage, newTask(taskId, { ...changes, leaseId: LEASE }));
  return attempt(taskId, { deploymentId: changes.deploymentId ?? DEPLOYMENT });
}

export function attempt(taskId: string, changes: Partial<Attempt> = {}): Attempt {
  return { ...key(taskId), leaseId: LEASE, attempt: 1, ...changes };
}

export async function endAttempt(
  storage: Storage,
  ended: Attempt,
  ...[end, nowMs = NOW_MS, used]: [end: AttemptEnd, nowMs?: number, used?: AttemptUse]
): Promise<Task | undefined> {
  const [task] = await storage.endAttempts({ nowMs, ends: [{ attempt: ended, end, used }] });
  return task;
}

export function success(value: unknown): AttemptEnd {
  return { status: "success", result: json(value) };
}

export function taskIds(tasks: readonly (Task | ClaimedTask)[]): string[] {
  return tasks.map((one) => ("task" in one ? one.task.taskId : one.taskId));
}

/** The tasks of all pages of a list, of which none has more than the limit. */
export async function listAll(storage: Storage, listing: TaskListing): Promise<Task[]> {
  const tasks: Task[] = [];
  let page = await storage.listTasks(listing);
  for (;;) {
    tasks.push(...page.tasks);
    if (page.tasks.length > listing.limit) {
      throw new Error(`a page has ${page.tasks.length} tasks, the limit is ${listing.limit}`);
    }
    if (page.nextBefore === undefined) {
      return tasks;
    }
    page = await storage.listTasks({ ...listing, before: page.nextBefore });
  }
}

/** The counters that are not zero: an endpoint without tasks may be listed or not. */
export async function counts(storage: Storage, deploymentId = DEPLOYMENT) {
  const all = await storage.countTasks({ deploymentId });
  return all
    .filter(({ queued, running }) => queued !== 0 || running !== 0)
    .sort((a, b) => a.endpoint.localeCompare(b.endpoint));
}
