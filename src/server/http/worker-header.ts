/**
 * Session affinity: an answer names the worker that it is from, and a request that says that name
 * goes to the same worker, as far as that has a slot in time (`queue/calls/calls.ts`).
 */

/** Of requests and of answers. */
export const WORKER_HEADER = "tessera-worker";

/** Ids of workers are UUIDs. Others name no worker. */
const WORKER_ID = /^[\da-f-]{36}$/;

/** The worker that a request names; undefined where it names none. */
export function namedWorker(header: string | string[] | null | undefined): string | undefined {
  return typeof header === "string" && WORKER_ID.test(header) ? header : undefined;
}
