/**
 * How operations cross to the storage thread, and their answers back. A copied
 * object carries the name of each of its properties, which costs both threads
 * more than what is in them. So a batch is one list of values, and so are its
 * answers: what every task goes through, its submission, its claim and its
 * end, is written value by value, everything else as one value.
 */
import type { Payload } from "../../protocol/messages.ts";
import type { NewTask, SubmitOutcome, TaskKey } from "../storage.ts";
import { asStored } from "../stored.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";
import {
  packEnd,
  packNewTask,
  packState,
  packTask,
  toPayload,
  toValue,
  unpackEnd,
  unpackNewTask,
  unpackState,
  unpackTask,
} from "./packed-tasks.ts";
import { ValueReader } from "./values.ts";

/** One operation to carry out. */
export interface OperationCall {
  readonly name: OperationName;
  readonly parameters: unknown;
}

export type Outcome =
  | { readonly value: unknown }
  /** `temporary`: the database could not be asked; the same call may work later. */
  | { readonly error: string; readonly temporary: boolean };

/** The two directions of one operation. */
interface Packing<Name extends OperationName> {
  pack(out: unknown[], parameters: OperationParameters<Name>): void;
  unpack(values: ValueReader): OperationParameters<Name>;
  packResult(out: unknown[], result: OperationResult<Name>): void;
  /** @param parameters with which the operation was asked for. */
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
    packResult(out, claimed) {
      out.push(claimed.length);
      for (const { task, leaseId, arguments: payload } of claimed) {
        packTask(out, task);
        out.push(leaseId, toValue(payload));
      }
    },
    unpackResult: (values) =>
      values.list(() => ({
        task: unpackTask(values),
        leaseId: values.next(),
        arguments: toPayload(values.next<string | Payload>()),
      })),
  },
  endAttempts: {
    pack(out, { nowMs, ends }) {
      out.push(nowMs, ends.length);
      for (const { attempt, end } of ends) {
        packEnd(out, attempt, end);
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

/** Who asked for a task to be stored knows what it then is, but for whether it was claimed. */
function packOutcome(outcome: SubmitOutcome & { readonly claimed?: boolean }): unknown {
  return outcome.claimed ?? outcome;
}

function unpackOutcome(packed: boolean | SubmitOutcome, task: NewTask): SubmitOutcome {
  return typeof packed === "boolean" ? { outcome: "stored", task: asStored(task, packed) } : packed;
}

/** Names and values come in pairs here, which the types cannot follow. */
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

/** @param operations those whose outcomes they are, in their order. */
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

/** The outcomes that `packOutcomes` wrote of these operations. Throws when they are those of others. */
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
