/**
 * The codec of messages to and from the storage thread. A structured clone of
 * an object carries the name of each property, which costs both threads more
 * than the values. So a batch is one flat list of values, and so are its
 * outcomes. The operations of every task (submit, claim, end) are written value
 * by value; all others as one value.
 */
import type { Payload } from "../../protocol/messages.ts";
import { NONE_RETURNED } from "../../tasks/attempt.ts";
import type { Task } from "../../tasks/task.ts";
import type {
  Attempt,
  AttemptEnd,
  CancelOutcome,
  NewTask,
  SubmitOutcome,
  TaskKey,
} from "../storage.ts";
import { asStored, isBare } from "../stored.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";

/** One operation to run. */
export interface OperationCall {
  readonly name: OperationName;
  readonly parameters: unknown;
}

export type Outcome =
  | { readonly value: unknown }
  /** `temporary`: the database could not be reached, or has no room (`isFull`); the same call may succeed later. */
  | { readonly error: string; readonly temporary: boolean; readonly isFull?: boolean };

/** The codec of one operation, in both directions. */
interface Packing<Name extends OperationName> {
  pack(out: unknown[], parameters: OperationParameters<Name>): void;
  unpack(values: ValueReader): OperationParameters<Name>;
  packResult(out: unknown[], result: OperationResult<Name>): void;
  /** @param parameters the parameters of the call */
  unpackResult(values: ValueReader, parameters: OperationParameters<Name>): OperationResult<Name>;
}

const PACKINGS: { readonly [Name in OperationName]?: Packing<Name> } = {
  submitTasks: {
    pack(out, { tasks }) {
      out.push(tasks.length);
      for (const task of tasks) {
        packNewTask(out, task);
      }
    },
    unpack: (values) => ({ tasks: values.list(unpackNewTask) }),
    packResult(out, outcomes) {
      for (const outcome of outcomes) {
        out.push(packOutcome(outcome));
      }
    },
    unpackResult: (values, { tasks }) => tasks.map((task) => unpackOutcome(values.next(), task)),
  },
  getTask: {
    pack: (out, { deploymentId, taskId }) => out.push(deploymentId, taskId),
    unpack: (values) => ({ deploymentId: values.next(), taskId: values.next() }),
    packResult: packFound,
    unpackResult: unpackFound,
  },
  claimTasks: {
    pack: (out, parameters) => out.push(parameters),
    unpack: (values) => values.next(),
    packResult(out, { tasks, later, due }) {
      out.push(later, due, tasks.length);
      for (const { task, leaseId, arguments: payload } of tasks) {
        packTask(out, task);
        out.push(leaseId, toValue(payload));
      }
    },
    unpackResult: (values) => ({
      later: values.next(),
      due: values.next(),
      tasks: values.list(() => ({
        task: unpackTask(values),
        leaseId: values.next(),
        arguments: toPayload(values.next<string | Payload>()),
      })),
    }),
  },
  cancelTask: {
    pack: (out, { deploymentId, taskId, nowMs }) => out.push(deploymentId, taskId, nowMs),
    unpack: (values) => ({
      deploymentId: values.next(),
      taskId: values.next(),
      nowMs: values.next(),
    }),
    packResult(out, found) {
      out.push(found?.outcome);
      if (found) {
        packState(out, found.task);
      }
    },
    unpackResult(values, key) {
      const outcome = values.next<CancelOutcome["outcome"] | undefined>();
      return outcome && { outcome, task: unpackState(values, key) };
    },
  },
  endAttempts: {
    pack(out, { nowMs, ends }) {
      out.push(nowMs, ends.length);
      for (const ended of ends) {
        packEnd(out, ended);
      }
    },
    unpack: (values) => ({ nowMs: values.next(), ends: values.list(unpackEnd) }),
    packResult(out, tasks) {
      for (const task of tasks) {
        packFound(out, task);
      }
    },
    unpackResult: (values, { ends }) => ends.map(({ attempt }) => unpackFound(values, attempt)),
  },
};

function packFound(out: unknown[], task: OperationResult<"getTask">): void {
  out.push(task !== undefined);
  if (task) {
    packState(out, task);
  }
}

function unpackFound(values: ValueReader, key: TaskKey): OperationResult<"getTask"> {
  return values.next<boolean>() ? unpackState(values, key) : undefined;
}

/** The caller of a submit can build the stored task itself, except for whether it was claimed. */
function packOutcome(outcome: SubmitOutcome & { readonly claimed?: boolean }): unknown {
  return outcome.claimed ?? outcome;
}

function unpackOutcome(packed: boolean | SubmitOutcome, task: NewTask): SubmitOutcome {
  return typeof packed === "boolean" ? { outcome: "stored", task: asStored(task, packed) } : packed;
}

/** The types cannot express that a name and its values belong together. */
type AnyPacking = {
  pack(out: unknown[], parameters: unknown): void;
  unpack(values: ValueReader): unknown;
  packResult(out: unknown[], result: unknown): void;
  unpackResult(values: ValueReader, parameters: unknown): unknown;
};

const WHOLE: AnyPacking = {
  pack: (out, parameters) => out.push(parameters),
  unpack: (values) => values.next(),
  packResult: (out, result) => out.push(result),
  unpackResult: (values) => values.next(),
};

function packingOf(name: OperationName): AnyPacking {
  return (PACKINGS[name] as AnyPacking | undefined) ?? WHOLE;
}

export function packOperations(operations: readonly OperationCall[]): unknown[] {
  const out: unknown[] = [];
  for (const { name, parameters } of operations) {
    out.push(name);
    packingOf(name).pack(out, parameters);
  }
  return out;
}

export function unpackOperations(packed: readonly unknown[]): OperationCall[] {
  const values = new ValueReader(packed);
  const operations: OperationCall[] = [];
  while (!values.ended) {
    const name = values.next<OperationName>();
    operations.push({ name, parameters: packingOf(name).unpack(values) });
  }
  return operations;
}

/** @param operations the operations of the outcomes, in the same order */
export function packOutcomes(
  operations: readonly OperationCall[],
  outcomes: readonly Outcome[],
): unknown[] {
  const out: unknown[] = [];
  for (const [index, { name }] of operations.entries()) {
    const outcome = outcomes[index] ?? { error: "it has no outcome", temporary: false };
    const { length } = out;
    try {
      if ("error" in outcome) {
        out.push(outcome);
      } else {
        out.push(null);
        packingOf(name).packResult(out, outcome.value);
      }
    } catch (err) {
      out.length = length;
      out.push({ error: String(err), temporary: false });
    }
  }
  return out;
}

/** Decodes what `packOutcomes` wrote for these operations. Throws when it belongs to others. */
export function unpackOutcomes(
  operations: readonly OperationCall[],
  packed: readonly unknown[],
): Outcome[] {
  const values = new ValueReader(packed);
  const outcomes = operations.map(({ name, parameters }): Outcome => {
    const failed = values.next<Outcome | null>();
    return failed ?? { value: packingOf(name).unpackResult(values, parameters) };
  });
  if (!values.ended) {
    throw new Error("there are more values than outcomes");
  }
  return outcomes;
}

/** Reads a flat list of values from beginning to end. */
class ValueReader {
  readonly #values: readonly unknown[];
  #at = 0;

  constructor(values: readonly unknown[]) {
    this.#values = values;
  }

  get ended(): boolean {
    return this.#at >= this.#values.length;
  }

  /** The next value, as its writer wrote it. Throws after the last one. */
  next<Value>(): Value {
    if (this.ended) {
      throw new Error("there are fewer values than were to be read");
    }
    const value = this.#values[this.#at] as Value;
    this.#at += 1;
    return value;
  }

  /** Reads a count, and then as many items. */
  list<One>(readOne: (values: ValueReader) => One): One[] {
    const list: One[] = [];
    for (let left = this.next<number>(); left > 0; left -= 1) {
      list.push(readOne(this));
    }
    return list;
  }
}

// Tasks, attempts and payloads as consecutive values. Each writer is next to
// its reader.

function packNewTask(out: unknown[], task: NewTask): void {
  out.push(
    task.deploymentId,
    task.taskId,
    task.endpoint,
    task.createdAtMs,
    task.runAtMs,
    task.startByMs,
    task.expiresAtMs,
    task.retentionMs,
    task.priority,
    task.retryOf,
    task.idempotency,
    task.queueLimit,
    task.leaseId,
    task.trace,
    task.webhook,
    task.key,
    task.tokenId,
    task.tags,
    toValue(task.arguments),
  );
}

function unpackNewTask(values: ValueReader): NewTask {
  // SQLite finds every repetition, also one that nobody said to be one.
  type Packed = Omit<NewTask, "repeated">;
  const task: { readonly [Name in keyof Required<Packed>]: Packed[Name] } = {
    deploymentId: values.next(),
    taskId: values.next(),
    endpoint: values.next(),
    createdAtMs: values.next(),
    runAtMs: values.next(),
    startByMs: values.next(),
    expiresAtMs: values.next(),
    retentionMs: values.next(),
    priority: values.next(),
    retryOf: values.next(),
    idempotency: values.next(),
    queueLimit: values.next(),
    leaseId: values.next(),
    trace: values.next(),
    webhook: values.next(),
    key: values.next(),
    tokenId: values.next(),
    tags: values.next(),
    arguments: toPayload(values.next<string | Payload>()),
  };
  return task;
}

function packTask(out: unknown[], task: Task): void {
  out.push(task.deploymentId, task.taskId);
  packState(out, task);
}

function unpackTask(values: ValueReader): Task {
  return unpackState(values, { deploymentId: values.next(), taskId: values.next() });
}

/** Writes a task without its key. */
function packState(out: unknown[], task: Task): void {
  out.push(
    task.endpoint,
    task.status,
    task.createdAtMs,
    task.startedAtMs,
    task.finishedAtMs,
    task.expiresAtMs,
    task.attempt,
    task.failedAttempts,
    task.progress,
    task.retryOf,
    task.failure,
    task.lastSequence,
    task.priority,
    task.runAtMs,
    task.startByMs,
    task.trace,
    task.worker,
    task.schedule,
    task.key,
    task.tags,
    task.returned.length > 0 ? task.returned : undefined,
    task.peakMemoryBytes,
  );
}

/** @param key the caller's own strings, because comparing a string with itself is immediate */
function unpackState(values: ValueReader, { deploymentId, taskId }: TaskKey): Task {
  return {
    deploymentId,
    taskId,
    endpoint: values.next(),
    status: values.next(),
    createdAtMs: values.next(),
    startedAtMs: values.next(),
    finishedAtMs: values.next(),
    expiresAtMs: values.next(),
    attempt: values.next(),
    failedAttempts: values.next(),
    progress: values.next(),
    retryOf: values.next(),
    failure: values.next(),
    lastSequence: values.next(),
    priority: values.next(),
    runAtMs: values.next(),
    startByMs: values.next(),
    trace: values.next(),
    worker: values.next(),
    schedule: values.next(),
    key: values.next(),
    tags: values.next(),
    returned: values.next<Task["returned"] | undefined>() ?? NONE_RETURNED,
    peakMemoryBytes: values.next(),
  };
}

/** Encodes a payload; nearly every one is JSON text only and is sent as that text. */
function toValue(payload: Payload): string | Payload {
  return isBare(payload) ? payload.json : payload;
}

function toPayload(value: string | Payload): Payload {
  return typeof value === "string" ? { json: value, files: [] } : value;
}

type Ended = OperationParameters<"endAttempts">["ends"][number];

/** Writes an attempt and its end. A success is only its result. */
function packEnd(out: unknown[], { attempt, end, events, used, isTimed }: Ended): void {
  out.push(attempt.deploymentId, attempt.taskId, attempt.leaseId, attempt.attempt);
  out.push(end.status === "success" ? toValue(end.result) : end, events, used, isTimed);
}

function unpackEnd(values: ValueReader): Ended {
  const attempt: Attempt = {
    deploymentId: values.next(),
    taskId: values.next(),
    leaseId: values.next(),
    attempt: values.next(),
  };
  const packed = values.next<string | Payload | AttemptEnd>();
  const end: AttemptEnd =
    typeof packed === "object" && "status" in packed
      ? packed
      : { status: "success", result: toPayload(packed) };
  return { attempt, end, events: values.next(), used: values.next(), isTimed: values.next() };
}
