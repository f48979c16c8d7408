/**
 * The poison-pill limits: how often a task may lose its worker or its node.
 *
 * A worker that dies was ended by one of the tasks in it. Where there were several,
 * each is a suspect: it runs again alone in a worker, and only what happens then
 * counts, with few such deaths allowed. When a node dies, all of its tasks are lost, and
 * at most one of them did it: these deaths count apart, with a higher limit.
 * From the fourth on, the task waits a time of its own before it runs again, so
 * that tasks which were lost together do not run beside the culprit again.
 */

/** Deaths of its worker that a task survives before it fails with `worker_lost`. */
export const MAX_LOST_WORKERS = 3;
/** Deaths of its node that a task survives before it fails with `node_lost`. */
export const MAX_LOST_NODES = 10;
/** Deaths of its node after which a task returns to the queue at once. */
export const MAX_INNOCENT_LOST_NODES = 3;
/** Longest wait of a task that lost more nodes; each task and attempt has its own. */
const MAX_LOST_NODE_PAUSE_MS = 60_000;

/**
 * Deaths of its worker that count of a task, this one included, in which it was alone. The death
 * that made it a suspect counts with the first that it causes alone: no other task did that one.
 */
export function countedDeaths(before: {
  readonly lostWorkers: number;
  readonly isSuspect: boolean;
}): number {
  const { lostWorkers, isSuspect } = before;
  return lostWorkers + (isSuspect && lostWorkers === 0 ? 2 : 1);
}

/** An attempt whose node is gone. */
interface LostNode {
  readonly taskId: string;
  readonly attempt: number;
  /** Nodes that the task has lost, this one included. */
  readonly lostNodes: number;
  readonly nowMs: number;
}

/**
 * The earliest time of the next attempt, in milliseconds since 1970; undefined
 * for at once, in the task's old place. Always the same for the same attempt.
 */
export function restartAfterLostNode({ taskId, attempt, lostNodes, nowMs }: LostNode) {
  if (lostNodes <= MAX_INNOCENT_LOST_NODES) {
    return undefined;
  }
  let hash = attempt;
  for (const letter of taskId) {
    hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
  }
  return nowMs + 1 + ((Math.imul(hash, 0x9e3779b1) >>> 0) % MAX_LOST_NODE_PAUSE_MS);
}
