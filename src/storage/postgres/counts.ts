/**
 * Maintained counters of queued and running tasks per endpoint, as sums of
 * deltas.
 *
 * Each statement that moves tasks appends one row per endpoint to
 * `queue_count_deltas` in its own transaction, so writers never wait for each
 * other as they would on a counter's row. A count is the sum of `queue_counts`
 * and the deltas that are not yet folded into it. Writers fold regularly, so
 * there are a few hundred deltas at most.
 */
import type { QueueCount } from "../queues.ts";
import type { Storage } from "../storage.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session, statement } from "./session.ts";

/**
 * SQL that appends deltas for tasks of `source` that were added (`sign` +) or
 * removed (-), by status.
 */
export function countedAs(source: string, sign: "+" | "-"): string {
  return `INSERT INTO queue_count_deltas (deployment_id, endpoint, queued, running)
    SELECT deployment_id, endpoint,
      ${sign}count(*) FILTER (WHERE status < ${STATUS.running}),
      ${sign}count(*) FILTER (WHERE status = ${STATUS.running})
    FROM ${source} GROUP BY deployment_id, endpoint`;
}

/** SQL that selects all counts and deltas of the deployments `$1`. */
export const COUNTED = `SELECT deployment_id, endpoint, queued, running FROM queue_counts
     WHERE deployment_id = ANY ($1::text[])
     UNION ALL
     SELECT deployment_id, endpoint, queued, running FROM queue_count_deltas
     WHERE deployment_id = ANY ($1::text[])`;

const COUNT = prepared(
  "count",
  `SELECT deployment_id, endpoint, sum(queued)::bigint AS queued, sum(running)::bigint AS running
   FROM (${COUNTED}) AS counted GROUP BY deployment_id, endpoint`,
);

/** Answers several calls, in order, by one query. */
export async function countTasks(
  session: Session,
  asked: readonly Parameters<Storage["countTasks"]>[0][],
): Promise<QueueCount[][]> {
  const found = new Map<string, QueueCount[]>();
  for (const { deploymentId } of asked) {
    found.set(deploymentId, []);
  }
  for (const row of await session.query(COUNT, [...found.keys()])) {
    found.get(String(row.deployment_id))?.push({
      endpoint: String(row.endpoint),
      queued: Number(row.queued),
      running: Number(row.running),
    });
  }
  return asked.map(({ deploymentId }) => [...(found.get(deploymentId) ?? [])]);
}

/** Deltas of queue counts folded at once. */
const MAX_FOLDED_DELTAS = 5_000;

/** Deltas are never updated, so their physical location (`ctid`) identifies them. */
const FOLD = statement(
  `WITH gone AS (
     DELETE FROM queue_count_deltas WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM queue_count_deltas LIMIT ${MAX_FOLDED_DELTAS} FOR UPDATE SKIP LOCKED))
     RETURNING deployment_id, endpoint, queued, running)
   INSERT INTO queue_counts AS counts (deployment_id, endpoint, queued, running)
   SELECT deployment_id, endpoint, sum(queued), sum(running) FROM gone
   GROUP BY deployment_id, endpoint ORDER BY deployment_id, endpoint
   ON CONFLICT (deployment_id, endpoint) DO UPDATE
     SET queued = counts.queued + excluded.queued, running = counts.running + excluded.running`,
);

/** Batches after which the deltas of queue counts are folded. */
const MAX_BATCHES_BETWEEN_FOLDS = 200;

/** Folds deltas into the counters as they accumulate. */
export class CountFolder {
  readonly #session: Session;
  #batches = 0;
  #folding: Promise<unknown> | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Called after each batch that moved tasks. */
  written(): void {
    this.#batches += 1;
    if (this.#batches >= MAX_BATCHES_BETWEEN_FOLDS && this.#folding === undefined) {
      this.#batches = 0;
      this.#folding = this.fold().finally(() => {
        this.#folding = undefined;
      });
    }
  }

  /** Folds deltas. After a failure they still count, and the next fold takes them. */
  async fold(): Promise<void> {
    await this.#session.query(FOLD).catch(() => undefined);
  }
}
