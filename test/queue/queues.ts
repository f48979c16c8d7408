/** Queues on a real storage, in which a test begins attempts by itself: their pool has no workers. */
import { SERVICE_LIMITS } from "../../src/config/limits.ts";
import type { Pool, Slot } from "../../src/pool/pool.ts";
import { Maintenance } from "../../src/queue/maintenance/maintenance.ts";
import type { PieceLimits } from "../../src/queue/pieces/attempt-pieces.ts";
import { Queue } from "../../src/queue/queue.ts";
import type { FileKeeper } from "../../src/storage/files/keeper.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { DEPLOYMENT } from "../storage/fixtures.ts";

export const LOG = { debug() {}, info() {}, warn() {}, error() {} };

export function queueOn(
  storage: Storage,
  {
    keeper,
    limits = SERVICE_LIMITS,
    slot,
    retentionMs = 0,
  }: { keeper: FileKeeper; limits?: PieceLimits; slot?: Slot; retentionMs?: number },
): Queue {
  const common = { storage, notifier: undefined, log: LOG, now: Date.now };
  return new Queue({
    ...common,
    deploymentId: DEPLOYMENT,
    maintenance: new Maintenance(common),
    pool: { size: 0, reserve: () => slot } as unknown as Pool,
    newId: createIdSource(),
    keeper,
    limits,
    maxWaiting: 10_000,
    graceMs: 0,
    retention: () => ({ ownMs: 0, maxMs: retentionMs }),
    slots: () => 0,
    onStorage() {},
    onTasksWait() {},
  });
}
