/** The steps of the property test that look, ask for aborts, and fail what missed its deadline. */
import fc from "fast-check";
import { expect } from "vitest";
import type { TaskListing } from "../../src/storage/listing.ts";
import type { TaskKey } from "../../src/storage/storage.ts";
import { listAll } from "./fixtures.ts";
import {
  ask,
  deploymentId,
  endpoint,
  index,
  LEASES,
  NOBODY,
  pick,
  pickRecent,
  type Step,
} from "./step.ts";

const STATUSES = ["queued", "running", "success", "failure", "cancelled"] as const;

export const abortSteps = index.map((which) =>
  ask(({ attempts, offered }) => {
    const asked = which % 5 ? attempts : offered;
    const { deploymentId, taskId } = pickRecent<TaskKey>(asked, which) ?? NOBODY;
    return { name: "requestAbort", parameters: { deploymentId, taskId } };
  }),
);

export const attemptSteps = fc
  .record({ leaseIds: fc.subarray(LEASES), aborts: fc.boolean() })
  .map(({ leaseIds, aborts }) =>
    ask(() => ({ name: aborts ? "listAborts" : "listAttempts", parameters: { leaseIds } })),
  );

/** All or none: which of those with one deadline go first is not promised. */
export const expireSteps = fc
  .constantFrom(0, 1_000, 1_000)
  .map((limit) => ask(({ nowMs }) => ({ name: "expireTasks", parameters: { nowMs, limit } })));

export const positionSteps = fc
  .record({ which: index, limit: fc.constantFrom(1, 2, 100) })
  .map((drawn) =>
    ask(({ nowMs, offered }) => {
      const { deploymentId, taskId } = pickRecent(offered, drawn.which) ?? NOBODY;
      const parameters = { deploymentId, taskId, nowMs, limit: drawn.limit };
      return { name: "queuePosition", parameters };
    }),
  );

/** Where pages end is not promised: all of them together are compared. */
export const listSteps = fc
  .record({
    deploymentId,
    limit: fc.integer({ min: 1, max: 5 }),
    endpoint: fc.option(endpoint, { nil: undefined, freq: 2 }),
    status: fc.option(fc.constantFrom(...STATUSES), { nil: undefined, freq: 2 }),
    tags: fc.constantFrom(undefined, undefined, ["x"], ["x", "y"]),
    from: fc.option(index, { nil: undefined, freq: 2 }),
    until: fc.option(index, { nil: undefined, freq: 2 }),
    before: fc.option(index, { nil: undefined, freq: 2 }),
  })
  .map(({ from, until, before, deploymentId, limit, endpoint, status, tags }): Step => {
    let asked = "not run";
    return {
      check: () => true,
      async run({ model, nowMs, offered }, { storage }) {
        const createdAt = (which: number) => pick(offered, which)?.createdAtMs ?? nowMs;
        const listing: TaskListing = {
          deploymentId,
          limit,
          ...(endpoint !== undefined && { endpoint }),
          ...(status !== undefined && { status }),
          ...(tags !== undefined && { tags }),
          ...(from !== undefined && { createdFromMs: createdAt(from) }),
          ...(until !== undefined && { createdBeforeMs: createdAt(until) }),
          ...(before !== undefined && { before: pick(offered, before)?.taskId ?? "0" }),
        };
        asked = `listTasks ${JSON.stringify(listing)}`;
        expect(await listAll(storage, listing)).toEqual(model.listTasks(listing));
      },
      toString: () => asked,
    };
  });

export const dueSteps = deploymentId.map((deploymentId) =>
  ask(({ nowMs }) => ({ name: "nextRunAt", parameters: { deploymentId, nowMs } })),
);
