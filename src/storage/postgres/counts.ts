/**
 * How many tasks of each endpoint are queued and running.
 *
 * Each statement that moves tasks adds one row per endpoint to
 * `queue_count_deltas`, in its own transaction: no two writers ever wait for
 * each other, as they would for a counter's row. A count is the sum of
 * `queue_counts` and the deltas that have not been folded into it, of which
 * there are a few hundred at most: whoever writes many folds them now and then.
 */
import type { QueueCount, Storage } from "../storage.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session, statement } from "./session.ts";

/** Adds tasks of `source` that came (`sign` +) or went (-), by their status, to the counts. */
export function countedAs(source: string, sign: "+" | "-"): string {
  return `INSERT INTO queue_count_deltas (deployment_id, endpoint, queued, running)
    SELECT deployment_id, endpoint,
      ${sign}count(*) FILTER (WHERE status < ${STATUS.running}),
      ${sign}count(*) FILTER (WHERE status = ${STATUS.running})
    FROM ${source} GROUP BY deployment_id, endpoint`;
}

const COUNT = prepared(
  "count",
  `SELECT deployment_id, endpoint, sum(queued)::bigint AS queued, sum(running)::bigint AS running
   FROM (
     SELECT deployment_id, endpoint, queued, running FROM queue_counts
     WHERE deployment_id = ANY ($1::text[])
     UNION ALL
     SELECT deployment_id, endpoint, queued, running FROM queue_count_deltas
     WHERE deployment_id = ANY ($1::text[])
   ) AS counted GROUP BY deployment_id, endpoint`,
);

/** The answers to several who ask, in their order, by one question. */
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

/** Deltas folded at once. */
const MAX_FOLDED = 5_000;

/** Deltas are never changed, so their places (`ctid`) name them. */
const FOLD = statement(
  `WITH gone AS (
     DELETE FROM queue_count_deltas WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM queue_count_deltas LIMIT ${MAX_FOLDED} FOR UPDATE SKIP LOCKED))
     RETURNING deployment_id, endpoint, queued, running)
   INSERT INTO queue_counts AS counts (deployment_id, endpoint, queued, running)
   SELECT deployment_id, endpoint, sum(queued), sum(running) FROM gone
   GROUP BY deployment_id, endpoint ORDER BY deployment_id, endpoint
   ON CONFLICT (deployment_id, endpoint) DO UPDATE
     SET queued = counts.queued + excluded.queued, running = counts.running + excluded.running`,
);

/** Batches after which their deltas are folded. */
const FOLD_EVERY = 200;

/** Folds deltas into the counts as they pile up. */
export class CountFolder {
  readonly #session: Session;
  #batches = 0;
  #folding: Promise<unknown> | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** A batch that moved tasks has been written. */
  written(): void {
    this.#batches += 1;
    if (this.#batches >= FOLD_EVERY && this.#folding === undefined) {
      this.#batches = 0;
      this.#folding = this.fold().finally(() => {
        this.#folding = undefined;
      });
    }
  }

  /** Deltas that could not be folded are still counted, and folded another time. */
  async fold(): Promise<void> {
    await this.#session.query(FOLD).catch(() => undefined);
  }
}
