/**
 * How operations cross to the storage thread, and their answers back. A copied
 * object carries the name of each of its properties, which costs both threads
 * more than what is in them. So what every task goes through, its submission,
 * its claim and its end, crosses as lists of values; everything else crosses
 * as it is.
 */
import type { Task } from "../../tasks/task.ts";
import type { Attempt, AttemptEnd, ClaimedTask, NewTask, SubmitOutcome } from "../storage.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";

/** The two directions of one operation. */
interface Packing<Name extends OperationName> {
  pack(parameters: OperationParameters<Name>): unknown;
  unpack(packed: unknown): OperationParameters<Name>;
  packResult(result: OperationResult<Name>): unknown;
  unpackResult(packed: unknown): OperationResult<Name>;
}

const PACKINGS: { readonly [Name in OperationName]?: Packing<Name> } = {
  submitTasks: {
    pack: ({ tasks }) => tasks.map(packNewTask),
    unpack(packed: readonly PackedNewTask[]) {
      return { tasks: packed.map(unpackNewTask) };
    },
    packResult: (outcomes) =>
      outcomes.map((each) => (each.outcome === "stored" ? packTask(each.task) : each)),
    unpackResult(packed: readonly (PackedTask | SubmitOutcome)[]) {
      return packed.map((each) =>
        "outcome" in each ? each : { outcome: "stored", task: unpackTask(each) },
      );
    },
  },
  getTask: {
    pack: ({ deploymentId, taskId }) => [deploymentId, taskId],
    unpack([deploymentId, taskId]: readonly [string, string]) {
      return { deploymentId, taskId };
    },
    packResult: (task) => task && packTask(task),
    unpackResult(packed: PackedTask | undefined) {
      return packed && unpackTask(packed);
    },
  },
  claimTasks: {
    pack: (parameters) => parameters,
    unpack(packed: OperationParameters<"claimTasks">) {
      return packed;
    },
    packResult: (claimed) => claimed.map(packClaimed),
    unpackResult(packed: readonly PackedClaim[]) {
      return packed.map(unpackClaimed);
    },
  },
  endAttempts: {
    pack: ({ nowMs, ends }) => ends.map(({ attempt, end }) => packEnd(attempt, end, nowMs)),
    unpack(packed: readonly PackedEnd[]) {
      return { nowMs: packed[0]?.[4] ?? 0, ends: packed.map(unpackEnd) };
    },
    packResult: (tasks) => tasks.map((task) => task && packTask(task)),
    unpackResult(packed: readonly (PackedTask | undefined)[]) {
      return packed.map((task) => task && unpackTask(task));
    },
  },
};

/** An operation as it crosses to the thread. */
export type PackedOperation = readonly [name: OperationName, parameters: unknown];

export function packOperation(name: OperationName, parameters: unknown): PackedOperation {
  return [name, packingOf(name)?.pack(parameters) ?? parameters];
}

export function unpackParameters([name, packed]: PackedOperation): unknown {
  return packingOf(name)?.unpack(packed) ?? packed;
}

export function packResult(name: OperationName, result: unknown): unknown {
  const packing = packingOf(name);
  return packing ? packing.packResult(result) : result;
}

export function unpackResult(name: OperationName, packed: unknown): unknown {
  const packing = packingOf(name);
  return packing ? packing.unpackResult(packed) : packed;
}

/** Names and values come in pairs here, which the types cannot follow. */
interface AnyPacking {
  pack(parameters: unknown): unknown;
  unpack(packed: unknown): unknown;
  packResult(result: unknown): unknown;
  unpackResult(packed: unknown): unknown;
}

function packingOf(name: OperationName): AnyPacking | undefined {
  return PACKINGS[name] as AnyPacking | undefined;
}

type PackedNewTask = ReturnType<typeof packNewTask>;

function packNewTask(task: NewTask) {
  return [
    task.deploymentId,
    task.taskId,
    task.endpoint,
    task.arguments,
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
  ] as const;
}

function unpackNewTask(packed: PackedNewTask): NewTask {
  return {
    deploymentId: packed[0],
    taskId: packed[1],
    endpoint: packed[2],
    arguments: packed[3],
    createdAtMs: packed[4],
    runAtMs: packed[5],
    startByMs: packed[6],
    expiresAtMs: packed[7],
    retentionMs: packed[8],
    priority: packed[9],
    retryOf: packed[10],
    idempotency: packed[11],
    queueLimit: packed[12],
    leaseId: packed[13],
    trace: packed[14],
  } satisfies { readonly [Name in keyof Required<NewTask>]: unknown };
}

type PackedTask = ReturnType<typeof packTask>;

function packTask(task: Task) {
  return [
    task.deploymentId,
    task.taskId,
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
  ] as const;
}

function unpackTask(packed: PackedTask): Task {
  return {
    deploymentId: packed[0],
    taskId: packed[1],
    endpoint: packed[2],
    status: packed[3],
    createdAtMs: packed[4],
    startedAtMs: packed[5],
    finishedAtMs: packed[6],
    expiresAtMs: packed[7],
    attempt: packed[8],
    failedAttempts: packed[9],
    progress: packed[10],
    retryOf: packed[11],
    failure: packed[12],
    lastSequence: packed[13],
    priority: packed[14],
    runAtMs: packed[15],
    startByMs: packed[16],
    trace: packed[17],
  };
}

type PackedClaim = ReturnType<typeof packClaimed>;

function packClaimed({ task, leaseId, arguments: payload }: ClaimedTask) {
  return [packTask(task), leaseId, payload] as const;
}

function unpackClaimed([task, leaseId, payload]: PackedClaim): ClaimedTask {
  return { task: unpackTask(task), leaseId, arguments: payload };
}

type PackedEnd = ReturnType<typeof packEnd>;

function packEnd(
  { deploymentId, taskId, leaseId, attempt }: Attempt,
  end: AttemptEnd,
  nowMs: number,
) {
  return [deploymentId, taskId, leaseId, attempt, nowMs, end] as const;
}

function unpackEnd([deploymentId, taskId, leaseId, attempt, , end]: PackedEnd) {
  return { attempt: { deploymentId, taskId, leaseId, attempt }, end };
}
