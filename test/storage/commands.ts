/** The steps of the property test that change something, and how all steps are mixed. */

import fc from "fast-check";
import { expect } from "vitest";
import type { AttemptEnd, NewEvent, NewTask, Storage } from "../../src/storage/storage.ts";
import { eventLog } from "../../src/tasks/event.ts";
import { WORKER_LOST } from "../../src/tasks/failure.ts";
import { counts, FAILURE, json } from "./fixtures.ts";
import { RATE } from "./model-starts.ts";
import {
  abortSteps,
  attemptSteps,
  dueSteps,
  expireSteps,
  listSteps,
  positionSteps,
} from "./questions.ts";
import {
  ask,
  DEPLOYMENTS,
  deploymentId,
  endpoint,
  index,
  LEASES,
  leaseId,
  NOBODY,
  pick,
  pickRecent,
  type Real,
  type Step,
  type World,
} from "./step.ts";
import { pauseSteps } from "./told.ts";

const TTL_MS = 100;
const RETENTION_MS = 200;

const submitSteps = fc
  .record({
    deploymentId,
    endpoint,
    leaseId: fc.option(leaseId, { nil: undefined, freq: 2 }),
    delayMs: fc.constantFrom(0, 0, 50, 150),
    // As far ahead as the clock jumps, so that some are met exactly.
    startWithinMs: fc.constantFrom(undefined, undefined, 7, 40, 101),
    priority: fc.integer({ min: -1, max: 1 }),
    queueLimit: fc.integer({ min: 1, max: 8 }),
    idempotencyKey: fc.option(fc.constantFrom("x", "y"), { nil: undefined, freq: 3 }),
    key: fc.constantFrom(undefined, "ada", "bob"),
    digest: fc.constantFrom("1", "1", "1", "2"),
    replay: fc.constantFrom(undefined, undefined, "always" as const),
    large: fc.boolean(),
    tags: fc.constantFrom(undefined, undefined, ["x"], ["y", "x"]),
  })
  .map(({ delayMs, startWithinMs, idempotencyKey, digest, replay, large, leaseId, ...drawn }) =>
    ask((world) => {
      const number = world.offered.length;
      const task: NewTask = {
        ...drawn,
        // As the port demands, ids are in the order of time, also when the clock goes back.
        taskId: `${world.nowMs}-${String(number).padStart(4, "0")}`,
        arguments: json(large ? "x".repeat(3_000) + number : number),
        createdAtMs: world.nowMs,
        runAtMs: world.nowMs + delayMs,
        expiresAtMs: world.nowMs + RETENTION_MS,
        retentionMs: RETENTION_MS,
        ...(startWithinMs !== undefined && { startByMs: world.nowMs + startWithinMs }),
        ...(leaseId !== undefined && { leaseId }),
        ...(idempotencyKey !== undefined && {
          idempotency: { key: idempotencyKey, digest, replay },
        }),
      };
      world.offered.push(task);
      return { name: "submitTasks", parameters: { tasks: [task] } };
    }),
  );

const repeatSteps = fc.array(index, { minLength: 1, maxLength: 3 }).map((picks) =>
  ask(({ offered }) => {
    const tasks = picks.flatMap((number) => pickRecent(offered, number) ?? []);
    const repeated = tasks.map((task) => ({ ...task, repeated: true }));
    return { name: "submitTasks", parameters: { tasks: repeated } };
  }),
);

const claimSteps = fc
  .record({
    deploymentId,
    suspects: fc.boolean(),
    claims: fc.array(fc.record({ endpoint, leaseId, limit: fc.nat(3) }), { maxLength: 3 }),
    byKey: fc.constantFrom(
      ...[undefined, undefined, {}, { concurrency: 1 }, { concurrency: 2 }],
      ...[{ rate: RATE }, { rate: RATE, concurrency: 2 }],
      ...[{ fair: "seconds" as const }, { fair: "seconds" as const, concurrency: 2 }],
      { fair: "seconds" as const, rate: RATE },
    ),
  })
  .map(({ byKey, claims, ...drawn }) =>
    ask((world) => {
      // Starts are timed by one clock, which does not go back.
      const nowMs = byKey && "rate" in byKey ? world.latestMs : world.nowMs;
      const each = byKey && { ...byKey, unkeyed: true };
      const given = claims.map((claim) => ({ ...claim, byKey: each }));
      return { name: "claimTasks", parameters: { ...drawn, claims: given, nowMs } };
    }),
  );

function toEnd(kind: number, nowMs: number): AttemptEnd {
  const ends: readonly AttemptEnd[] = [
    { status: "success", result: json(kind % 2 ? "small" : "large".repeat(800)) },
    { status: "failure", failure: FAILURE },
    { status: "cancelled" },
    { status: "queued", runAtMs: nowMs + (kind % 3) * 50, failed: true, failure: FAILURE },
    { status: "queued", failed: false, failure: FAILURE },
    { status: "queued", failed: false, failure: FAILURE, unbegun: true },
    { status: "failure", failure: FAILURE, unbegun: true },
    { status: "queued", runAtMs: nowMs + 20, failed: false, failure: FAILURE },
    { status: "queued", failed: false, failure: FAILURE, suspect: true },
    { status: "worker_lost", failure: WORKER_LOST },
    { status: "node_lost", failure: FAILURE },
  ];
  return pick(ends, kind) ?? { status: "cancelled" };
}

function lastEvents(timeMs: number): NewEvent[] {
  return [
    { timeMs, body: { kind: "log", level: "info", message: "last line" } },
    { timeMs, body: { kind: "progress", fraction: 1, message: "all" } },
  ];
}

const endSteps = fc
  .array(
    fc.record({
      which: index,
      kind: index,
      events: fc.constantFrom(undefined, undefined, 0, 1, 2),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((drawn) =>
    ask(({ attempts, nowMs }) => {
      const ends = drawn.map(({ which, kind, events }) => ({
        attempt: pickRecent(attempts, which) ?? NOBODY,
        end: toEnd(kind, nowMs),
        ...(events !== undefined && { events: lastEvents(nowMs).slice(0, events) }),
      }));
      return { name: "endAttempts", parameters: { nowMs, ends } };
    }),
  );

const eventSteps = fc
  .array(
    fc.record({
      which: index,
      fraction: fc.constantFrom(0, 0.5, 1),
      log: fc.boolean(),
      line: fc.constantFrom(undefined, 1, 2, 3, 4, 5),
      displaces: fc.option(
        fc.record({ first: fc.constantFrom(1, 2), last: fc.constantFrom(3, 4) }),
        {
          nil: undefined,
          freq: 3,
        },
      ),
    }),
    { maxLength: 3 },
  )
  .map((drawn) =>
    ask(({ attempts, nowMs }) => ({
      name: "recordEvents",
      parameters: {
        // Lines come in their order: none of one call takes the place of a later one.
        events: drawn.map(({ which, fraction, log, line, displaces }, at) => ({
          attempt: pickRecent(attempts, which) ?? NOBODY,
          timeMs: nowMs,
          body: log
            ? { kind: "log", level: "info", message: "line", ...(line && { line }) }
            : { kind: "progress", fraction, message: `at ${fraction}` },
          ...(log && at === drawn.length - 1 && displaces && { displaces }),
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

const updateSteps = fc
  .record({
    which: index,
    priority: fc.constantFrom(undefined, -1, 1),
    inMs: fc.constantFrom(undefined, -20, 0, 50, 150),
    startWithinMs: fc.constantFrom(undefined, null, 7, 101),
    retentionMs: fc.constantFrom(undefined, 30, 400),
    tags: fc.constantFrom(undefined, [], ["y"]),
  })
  .map(({ which, priority, inMs, startWithinMs, retentionMs, tags }) =>
    ask(({ offered, nowMs }) => {
      const { deploymentId, taskId } = pickRecent(offered, which) ?? NOBODY;
      const startByMs = startWithinMs == null ? startWithinMs : nowMs + startWithinMs;
      const runAtMs = inMs === undefined ? undefined : nowMs + inMs;
      const change = { priority, runAtMs, startByMs, retentionMs, tags };
      return { name: "updateTask", parameters: { deploymentId, taskId, change, nowMs } };
    }),
  );

const deleteSteps = fc.tuple(index, index).map((picks) =>
  ask(({ offered, nowMs }) => {
    const { deploymentId } = pickRecent(offered, picks[0]) ?? NOBODY;
    const tasks = picks.flatMap((number) => pickRecent(offered, number) ?? []);
    const own = tasks.filter((task) => task.deploymentId === deploymentId);
    const taskIds = [...new Set(own.map(({ taskId }) => taskId))];
    return { name: "deleteTasks", parameters: { deploymentId, taskIds, nowMs } };
  }),
);

const openSteps = leaseId.map((leaseId) =>
  ask(({ nowMs }) => ({
    name: "openLease",
    parameters: { leaseId, owner: "test", nowMs, ttlMs: TTL_MS },
  })),
);

const renewSteps = fc
  .subarray(LEASES)
  .map((leaseIds) =>
    ask(({ nowMs }) => ({ name: "renewLeases", parameters: { leaseIds, nowMs, ttlMs: TTL_MS } })),
  );

const surveySteps = fc
  .subarray(DEPLOYMENTS)
  .map((deploymentIds) =>
    ask(({ nowMs }) => ({ name: "survey", parameters: { nowMs, deploymentIds } })),
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

/** Mostly forward by a little, sometimes by a lot, sometimes back. */
const clockSteps = fc.constantFrom(1, 7, 40, 60, 101, 250, 100_000, -30, -5_000).map(
  (byMs): Step => ({
    check: () => true,
    async run(world) {
      world.nowMs += byMs;
      world.latestMs = Math.max(world.latestMs, world.nowMs);
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
    ...[
      repeatSteps,
      eventSteps,
      cancelSteps,
      deleteSteps,
      updateSteps,
      openSteps,
      openSteps,
      renewSteps,
      surveySteps,
    ],
    ...[abortSteps, abortSteps, attemptSteps, attemptSteps, expireSteps],
    ...[positionSteps, positionSteps, listSteps, listSteps],
    ...[closeSteps, rescueSteps, pruneSteps, dueSteps, clockSteps, clockSteps, pauseSteps],
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
