/**
 * The steps of the property test: each one asks the storage and the reference
 * model the same question and compares the answers. What a step is about is
 * drawn as plain numbers and looked up in the model when it runs, so that
 * shrinking keeps its meaning.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Attempt, AttemptEnd, NewTask, Storage } from "../../src/storage/storage.ts";
import { eventLog } from "../../src/tasks/event.ts";
import type { Task } from "../../src/tasks/task.ts";
import type { TestDatabase } from "./contract.ts";
import { counts, FAILURE, json, NOW_MS } from "./fixtures.ts";
import type { QueueModel } from "./model.ts";

const DEPLOYMENTS = ["deployment-1", "deployment-2"];
const ENDPOINTS = ["a", "b"];
const LEASES = ["lease-1", "lease-2", "lease-3"];
const TTL_MS = 100;
const RETENTION_MS = 200;

/** What the model side of a run knows. */
export interface World {
  readonly model: QueueModel;
  nowMs: number;
  /** Every task that was ever offered, to repeat it and to look for it at the end. */
  readonly offered: NewTask[];
  /** Every attempt that ever began: most are stale. */
  readonly attempts: Attempt[];
}

export interface Real {
  readonly database: TestDatabase;
  storage: Storage;
}

type Step = fc.AsyncCommand<World, Real>;
type Asked = {
  [Name in keyof Storage & keyof QueueModel]: QueueModel[Name] extends (p: infer P) => unknown
    ? { readonly name: Name; readonly parameters: P }
    : never;
}[keyof Storage & keyof QueueModel];

export function world(model: QueueModel): World {
  return { model, nowMs: NOW_MS, offered: [], attempts: [] };
}

function ask(question: (world: World) => Asked): Step {
  let asked = "not run";
  return {
    check: () => true,
    async run(world, real) {
      const { name, parameters } = question(world);
      asked = `${name} ${JSON.stringify(parameters)}`;
      const expected = call(world.model, name, parameters);
      const actual = await call(real.storage, name, parameters);
      expect(comparable(name, actual)).toEqual(comparable(name, expected));
      remember(world);
    },
    toString: () => asked,
  };
}

function call(target: object, name: string, parameters: unknown): unknown {
  const method = (target as Record<string, (parameters: unknown) => unknown>)[name];
  return method?.call(target, parameters);
}

/** Rescued tasks come in any order. */
function comparable(name: Asked["name"], answer: unknown): unknown {
  const unordered = name === "rescueExpired" || name === "closeLease";
  return unordered && Array.isArray(answer)
    ? answer.toSorted((a: Task, b: Task) => (orderOf(a) < orderOf(b) ? -1 : 1))
    : answer;
}

function orderOf({ deploymentId, taskId }: Task): string {
  return `${deploymentId}/${taskId}`;
}

function remember({ model, attempts }: World): void {
  for (const { task, leaseId } of model.tasks.values()) {
    const { deploymentId, taskId, attempt } = task;
    const known = attempts.some((one) => one.taskId === taskId && one.attempt === attempt);
    if (leaseId !== undefined && !known) {
      attempts.push({ deploymentId, taskId, leaseId, attempt });
    }
  }
}

function pick<Value>(values: readonly Value[], index: number): Value | undefined {
  return values[index % (values.length || 1)];
}

const NOBODY = { deploymentId: "nowhere", taskId: "nothing", leaseId: "none", attempt: 1 };

/** Recent ones more often: the others are mostly over. */
function pickRecent<Value>(values: readonly Value[], index: number): Value | undefined {
  return pick(index % 4 ? values.slice(-4) : values, index);
}

const index = fc.nat(1_000);
const deploymentId = fc.constantFrom(...DEPLOYMENTS);
const endpoint = fc.constantFrom(...ENDPOINTS);
const leaseId = fc.constantFrom(...LEASES);

const submitSteps = fc
  .record({
    ...{ deploymentId, endpoint },
    leaseId: fc.option(leaseId, { nil: undefined }),
    delayMs: fc.constantFrom(0, 0, 50, 150),
    priority: fc.integer({ min: -1, max: 1 }),
    queueLimit: fc.integer({ min: 1, max: 4 }),
    key: fc.option(fc.constantFrom("x", "y"), { nil: undefined, freq: 3 }),
    digest: fc.constantFrom("1", "2"),
    large: fc.boolean(),
  })
  .map(({ delayMs, key, digest, large, leaseId, ...drawn }) =>
    ask((world) => {
      const number = world.offered.length;
      const task: NewTask = {
        ...drawn,
        taskId: `task-${String(number).padStart(4, "0")}`,
        arguments: json(large ? "x".repeat(3_000) + number : number),
        createdAtMs: world.nowMs,
        runAtMs: world.nowMs + delayMs,
        expiresAtMs: world.nowMs + RETENTION_MS,
        retentionMs: RETENTION_MS,
        ...(leaseId !== undefined && { leaseId }),
        ...(key !== undefined && { idempotency: { key, digest } }),
      };
      world.offered.push(task);
      return { name: "submitTasks", parameters: { tasks: [task] } };
    }),
  );

const repeatSteps = fc.array(index, { minLength: 1, maxLength: 3 }).map((picks) =>
  ask(({ offered }) => {
    const tasks = picks.flatMap((number) => pickRecent(offered, number) ?? []);
    return { name: "submitTasks", parameters: { tasks } };
  }),
);

const claimSteps = fc
  .record({
    deploymentId,
    claims: fc.array(fc.record({ endpoint, leaseId, limit: fc.nat(3) }), { maxLength: 3 }),
  })
  .map((drawn) => ask(({ nowMs }) => ({ name: "claimTasks", parameters: { ...drawn, nowMs } })));

function toEnd(kind: number, nowMs: number): AttemptEnd {
  const ends: readonly AttemptEnd[] = [
    { status: "success", result: json(kind % 2 ? "small" : "large".repeat(800)) },
    { status: "failure", failure: FAILURE },
    { status: "cancelled" },
    { status: "queued", runAtMs: nowMs + (kind % 3) * 50, failed: true },
    { status: "worker_lost" },
  ];
  return pick(ends, kind) ?? { status: "cancelled" };
}

const endSteps = fc
  .array(fc.record({ which: index, kind: index }), { minLength: 1, maxLength: 3 })
  .map((drawn) =>
    ask(({ attempts, nowMs }) => {
      const ends = drawn.map(({ which, kind }) => ({
        attempt: pickRecent(attempts, which) ?? NOBODY,
        end: toEnd(kind, nowMs),
      }));
      return { name: "endAttempts", parameters: { nowMs, ends } };
    }),
  );

const eventSteps = fc
  .array(fc.record({ which: index, fraction: fc.constantFrom(0, 0.5, 1), log: fc.boolean() }), {
    maxLength: 3,
  })
  .map((drawn) =>
    ask(({ attempts, nowMs }) => ({
      name: "recordEvents",
      parameters: {
        events: drawn.map(({ which, fraction, log }) => ({
          attempt: pickRecent(attempts, which) ?? NOBODY,
          timeMs: nowMs,
          body: log
            ? { kind: "log", level: "info", message: "line" }
            : { kind: "progress", fraction, message: `at ${fraction}` },
        })),
      },
    })),
  );

const cancelSteps = index.map((which) =>
  ask(({ offered, nowMs }) => {
    const { deploymentId, taskId } = pickRecent(offered, which) ?? NOBODY;
    return { name: "cancelTask", parameters: { deploymentId, taskId, nowMs } };
  }),
);

const openSteps = leaseId.map((leaseId) =>
  ask(({ nowMs }) => ({
    name: "openLease",
    parameters: { leaseId, owner: "test", nowMs, ttlMs: TTL_MS },
  })),
);

const heartbeatSteps = fc
  .subarray(LEASES)
  .map((leaseIds) =>
    ask(({ nowMs }) => ({ name: "renewLeases", parameters: { leaseIds, nowMs, ttlMs: TTL_MS } })),
  );

const closeSteps = leaseId.map((leaseId) =>
  ask(({ nowMs }) => ({ name: "closeLease", parameters: { leaseId, nowMs } })),
);

const rescueSteps = fc.nat(5).map((number) =>
  ask(({ nowMs }) => ({
    name: "rescueExpired",
    parameters: number === 0 ? { nowMs, all: true } : { nowMs },
  })),
);

/** All or none: which of those that expire at one moment go first is not promised. */
const pruneSteps = fc
  .constantFrom(0, 1_000)
  .map((limit) => ask(({ nowMs }) => ({ name: "pruneFinished", parameters: { nowMs, limit } })));

const dueSteps = deploymentId.map((deploymentId) =>
  ask(({ nowMs }) => ({ name: "nextRunAt", parameters: { deploymentId, nowMs } })),
);

/** Mostly forward by a little, sometimes by a lot, sometimes back. */
const clockSteps = fc.constantFrom(1, 7, 40, 60, 101, 250, 100_000, -30, -5_000).map(
  (byMs): Step => ({
    check: () => true,
    async run(world) {
      world.nowMs += byMs;
    },
    toString: () => `clock ${byMs} ms`,
  }),
);

/** The process ends and another one opens the database: only for one that outlives it. */
const crashSteps = fc.constant<Step>({
  check: () => true,
  async run(_world, real) {
    await real.storage[Symbol.asyncDispose]();
    real.storage = await real.database.open();
  },
  toString: () => "reopen",
});

/** Sequences of steps; with `durable`, the database is reopened in between. */
export function steps(durable: boolean, maxCommands: number) {
  const often = [submitSteps, submitSteps, claimSteps, claimSteps, endSteps, endSteps];
  const seldom = [
    ...[repeatSteps, eventSteps, cancelSteps, openSteps, openSteps, heartbeatSteps],
    ...[closeSteps, rescueSteps, pruneSteps, dueSteps, clockSteps, clockSteps],
  ];
  const usual = [...often, ...often, ...seldom];
  const all = [...usual, ...usual, ...usual, ...(durable ? [crashSteps] : [])];
  return fc.commands<World, Real, false>(all, { maxCommands, size: "max" });
}

/** Everything that the storage can tell about every task is what the model says. */
export async function expectSame({ model, offered }: World, storage: Storage): Promise<void> {
  await Promise.all(
    offered.map(async ({ deploymentId, taskId }) => {
      const key = { deploymentId, taskId };
      const found = model.find(key);
      const [task, given, result, history] = await Promise.all([
        storage.getTask(key),
        storage.getArguments(key),
        storage.getResult(key),
        storage.getHistory({ ...key, afterSequence: 0, limit: 1_000 }),
      ]);
      expect({ task, given, result, log: history && eventLog(history, 0) }).toEqual({
        task: found?.task,
        given: found?.submitted.arguments,
        result: found?.result,
        log: found?.log,
      });
    }),
  );
  for (const deploymentId of DEPLOYMENTS) {
    const expected = model.countTasks({ deploymentId });
    const byName = expected.sort((a, b) => a.endpoint.localeCompare(b.endpoint));
    expect(await counts(storage, deploymentId)).toEqual(byName);
  }
}
