/**
 * Conversions of a submit: from a call to the task to store, with its id, and from the outcome to an
 * answer.
 */
import { type Problem, problem } from "../errors.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import type { NewTask, Storage, SubmitOutcome } from "../storage/storage.ts";
import { HOME_CELL, type IdSource, timeOfTaskId } from "../tasks/id.ts";
import type { Task } from "../tasks/task.ts";
import type { Origin } from "../tracing/context.ts";
import type { OpenSpan } from "../tracing/tracing.ts";

export interface SubmissionOptions {
  readonly retryOf?: string;
  readonly idempotency?: NewTask["idempotency"];
  /** Default: the endpoint's. */
  readonly priority?: number;
  /** The earliest start (milliseconds since 1970). Default, and for past times: at once. */
  readonly runAtMs?: number;
  /** The latest start (milliseconds since 1970); a task that misses it fails. Default: no limit. */
  readonly startByMs?: number;
  /** How long the task is kept after its end. Default: the deployment's or the endpoint's. */
  readonly retentionMs?: number | undefined;
  /** Whose it is among the callers that share the endpoint. Default: nobody's. */
  readonly key?: string | undefined;
  /** The webhook of the deployment, by name, that hears of the end. */
  readonly webhook?: string | undefined;
  /** Words by which it is found again. */
  readonly tags?: readonly string[] | undefined;
  /** Nothing new is stored: the answer is the task that holds the idempotency key, or else this. */
  readonly refusal?: Problem | undefined;
  /** The request that asked for it. */
  readonly origin?: Origin;
  /** The trace of the task that this one retries. */
  readonly retriedTrace?: string | undefined;
  /** Stores the task, together with what has to change with it. Default: alone. */
  readonly store?: (task: NewTask) => Promise<StoreOutcome>;
}

/** What became of storing a task; `taken`: nothing, as what has to change with it has changed. */
export type StoreOutcome = SubmitOutcome | { readonly outcome: "taken" };

/** Nothing was submitted: others have changed what the task was to be stored with. */
export class TakenByOthers extends Error {}

/** A call to submit. */
export interface Submission {
  readonly endpoint: EndpointManifest;
  readonly payload: Payload;
  readonly options?: SubmissionOptions;
}

export interface Submitted {
  readonly task: Task;
  /** True when the task was stored earlier under the same idempotency key. */
  readonly replayed: boolean;
}

/** What a deployment and the operator say of how long tasks are kept. */
export interface Retention {
  /** Of the deployment; 0: as its endpoints say. */
  readonly ownMs: number;
  readonly maxMs: number;
}

interface NewTaskFacts {
  readonly deploymentId: string;
  readonly taskId: string;
  readonly retention: Retention;
  /** The span of the submit; undefined where nothing is traced. */
  readonly span?: OpenSpan | undefined;
}

/** The task of a call. Its creation time is the one in its id, so that ids and times sort alike. */
export function toNewTask(
  { endpoint, payload, options = {} }: Submission,
  { deploymentId, taskId, span, retention }: NewTaskFacts,
): NewTask {
  const createdAtMs = timeOfTaskId(taskId);
  const runAtMs = Math.max(createdAtMs, options.runAtMs ?? createdAtMs);
  // Keys are looked up before queues are found full.
  const queueLimit = options.refusal ? 0 : endpoint.queueLimit;
  const keptMs = options.retentionMs ?? (retention.ownMs || endpoint.retentionMs);
  const retentionMs = Math.min(keptMs, retention.maxMs);
  const trace = (span ?? options.origin)?.trace;
  const { retryOf, idempotency, startByMs, priority = endpoint.priority } = options;
  const { webhook, key = endpoint.byKey && "", tags } = options;
  return {
    deploymentId,
    taskId,
    endpoint: endpoint.name,
    arguments: payload,
    createdAtMs,
    runAtMs,
    expiresAtMs: runAtMs + retentionMs,
    retentionMs,
    priority,
    queueLimit,
    startByMs,
    retryOf,
    key,
    idempotency,
    trace,
    webhook,
    tokenId: options.origin?.tokenId,
    tags,
  };
}

/** The deployment has no webhook of that name. */
function webhookNotFound(name: string): Problem {
  return problem(
    "WEBHOOK_NOT_FOUND",
    `this deployment has no webhook ${JSON.stringify(name)}: name one that it has (tessera webhook list), or create it (tessera webhook create)`,
    { violations: [{ field: "webhook", description: "names no webhook of the deployment" }] },
  );
}

/** Stores a task, alone or as its submission says. */
export async function storeTask(
  task: NewTask,
  { options }: Submission,
  storage: Pick<Storage, "submitTasks">,
): Promise<StoreOutcome> {
  const [outcome] = options?.store
    ? [await options.store(task)]
    : await storage.submitTasks({ tasks: [task] });
  if (outcome === undefined) {
    throw new Error("the storage answered nothing for a submitted task");
  }
  return outcome;
}

/**
 * The stored task, or IDEMPOTENCY_KEY_REUSED, STORAGE_UNAVAILABLE, WEBHOOK_NOT_FOUND, QUEUE_FULL or
 * the refusal of what is no repeat.
 * Throws `TakenByOthers`, which only a submission with a `store` of its own is answered.
 */
export function toSubmitted(
  outcome: StoreOutcome,
  { endpoint, options }: Submission,
  retryAfterMs: () => number,
): Submitted | Problem {
  const isOfKey = outcome.outcome === "replayed" || outcome.outcome === "key_reused";
  if (options?.refusal && !isOfKey) {
    return options.refusal;
  }
  switch (outcome.outcome) {
    case "stored":
      return { task: outcome.task, replayed: false };
    case "replayed":
      return { task: outcome.task, replayed: true };
    case "taken":
      throw new TakenByOthers();
    case "key_reused":
      return problem(
        "IDEMPOTENCY_KEY_REUSED",
        `the idempotency key ${JSON.stringify(options?.idempotency?.key)} was used for another call (other arguments, another schedule, or the retry of another task): use a new key for a new call`,
      );
    case "blobs_gone":
      return problem(
        "STORAGE_UNAVAILABLE",
        "the files of the arguments were deleted before the task was stored: send them again",
        { retryAfterMs: 1_000 },
      );
    case "webhook_unknown":
      return webhookNotFound(options?.webhook ?? "");
    case "queue_full":
      return problem(
        "QUEUE_FULL",
        `${outcome.queued} tasks of endpoint ${endpoint.name} are waiting, its limit is ${endpoint.queueLimit}: try again later`,
        { retryAfterMs: retryAfterMs() },
      );
  }
}

// Ids of new tasks. They say the cell that keeps the task, so that is decided first.

interface NewIdsOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "placeTask">;
  readonly newId: IdSource;
}

export class NewIds {
  readonly #options: NewIdsOptions;

  constructor(options: NewIdsOptions) {
    this.#options = options;
  }

  /**
   * Submits a call with the id of its task: at once where there is one database. Rejects with
   * STORAGE_UNAVAILABLE where the task cannot be placed now.
   */
  one<Answer>(
    submission: Submission,
    submit: (taskId: string) => Promise<Answer>,
  ): Promise<Answer> {
    const { storage, newId } = this.#options;
    // What is stored with something else of home is home's.
    return storage.placeTask === undefined || submission.options?.store !== undefined
      ? submit(newId())
      : this.#place(submission).then((cell) => submit(newId(cell)));
  }

  /** Ids for the calls of one submit: the calls without any key go to one cell, in one transaction. */
  async all(submissions: readonly Submission[]): Promise<string[]> {
    const { storage, newId } = this.#options;
    let shared: Promise<number> | undefined;
    const cells: number[] = [];
    for (const submission of submissions) {
      if (storage.placeTask === undefined) {
        cells.push(HOME_CELL);
      } else if (hasKey(submission)) {
        cells.push(await this.#place(submission));
      } else {
        shared ??= this.#place(submission);
        cells.push(await shared);
      }
    }
    // Ids of one millisecond have no order; sorted, they keep the order of the calls in a cell.
    const ids = new Map(
      [...Map.groupBy(cells, (cell) => cell)].map(([cell, calls]) => [
        cell,
        calls
          .map(() => newId(cell))
          .sort()
          .values(),
      ]),
    );
    return cells.map((cell) => ids.get(cell)?.next().value ?? "");
  }

  async #place({ endpoint, options = {} }: Submission): Promise<number> {
    const { deploymentId, storage } = this.#options;
    const { key = endpoint.byKey && "", retryOf, idempotency } = options;
    const cell = await storage.placeTask?.({
      deploymentId,
      endpoint: endpoint.name,
      key,
      idempotencyKey: idempotency?.key,
      ...(retryOf !== undefined && { retryOf }),
    });
    return cell ?? HOME_CELL;
  }
}

function hasKey({ endpoint, options }: Submission): boolean {
  return (
    options?.key !== undefined || options?.idempotency !== undefined || endpoint.byKey !== undefined
  );
}
