/**
 * Maintained counters of queued and running tasks per endpoint, and of what was used, as sums
 * of deltas.
 *
 * Each statement that moves tasks appends one row per endpoint to
 * `queue_count_deltas` in its own transaction, so writers never wait for each
 * other as they would on a counter's row. A count is the sum of `queue_counts`
 * and the deltas that are not yet folded into it. Writers fold regularly, so
 * there are a few hundred deltas at most. What a task used stands in the same row as its move,
 * so that counting it costs no statement (`usage_now` in the schema sums it up).
 */
import { dayOfSql } from "../days.ts";
import type { QueueCount } from "../queues.ts";
import type { Storage } from "../storage.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session, statement } from "./session.ts";

/** SQL expressions over the tasks of a statement: their columns in `queue_count_deltas`. */
interface Counted {
  readonly queued: string;
  readonly running: string;
  /** What they used, by column, with the `day`. Default: nothing. */
  readonly used?: { readonly day: string; readonly [column: string]: string };
}

/** SQL that appends a delta for each endpoint of the tasks of `source`, and each token if they used something. */
export function countedOf(source: string, { queued, running, used }: Counted): string {
  const { day, ...sums } = used ?? { day: "" };
  const key = used ? ["deployment_id", "endpoint", "token_id"] : ["deployment_id", "endpoint"];
  const columns = Object.keys(sums);
  return `INSERT INTO queue_count_deltas (${[...key, ...(used ? ["day"] : []), "queued", "running", ...columns].join(", ")})
    SELECT ${[...key, ...(used ? [day] : []), queued, running, ...Object.values(sums)].join(", ")}
    FROM ${source} GROUP BY ${[...key, ...(used ? [day] : [])].join(", ")}`;
}

/**
 * SQL that appends deltas for tasks of `source` that were added (`sign` +) or
 * removed (-), by status.
 */
export function countedAs(source: string, sign: "+" | "-", used?: Counted["used"]): string {
  return countedOf(source, {
    queued: `${sign}count(*) FILTER (WHERE status < ${STATUS.running})`,
    running: `${sign}count(*) FILTER (WHERE status = ${STATUS.running})`,
    ...(used && { used }),
  });
}

/** The columns of `live_tasks` that `submittedUse` reads of a row that was stored just now. */
export const SUBMITTED_COLUMNS =
  "token_id, created_at_ms, octet_length(arguments) AS bytes, argument_bytes";

/** What tasks use by being submitted, or (`-`) had used that were not. */
export function submittedUse(sign: "+" | "-"): Counted["used"] {
  return {
    day: `${dayOfSql("created_at_ms")}::integer`,
    tasks: `${sign}count(*)`,
    bytes_in: `${sign}sum(coalesce(argument_bytes, bytes))`,
  };
}

/** What attempts used that have ended; one that did not run has no `gpu_ms`. */
export const ENDED_USE: Counted["used"] = {
  day: `${dayOfSql("now_ms")}::integer`,
  run_ms: "sum(greatest(0, now_ms - started_at_ms)) FILTER (WHERE gpu_ms IS NOT NULL)",
  gpu_ms: "sum(gpu_ms)",
  bytes_out: "sum(bytes_out)",
  units: "array_agg(units) FILTER (WHERE units IS NOT NULL)",
};

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

/** What deltas that are deleted carry. */
export const DELTA_COLUMNS =
  "deployment_id, endpoint, queued, running, day, token_id, tasks, run_ms, gpu_ms, bytes_in, bytes_out, units";

/** SQL that adds what deltas of `gone` say of usage, as two parts of a statement. */
export const FOLD_USAGE = `used AS (
     INSERT INTO usage AS kept (deployment_id, day, endpoint, token_id, tasks, run_ms, gpu_ms,
       bytes_in, bytes_out)
     SELECT deployment_id, day, endpoint, coalesce(token_id, '') AS token, coalesce(sum(tasks), 0),
       coalesce(sum(run_ms), 0), coalesce(sum(gpu_ms), 0), coalesce(sum(bytes_in), 0),
       coalesce(sum(bytes_out), 0)
     FROM gone WHERE day IS NOT NULL GROUP BY deployment_id, day, endpoint, token
     ORDER BY deployment_id, day, endpoint, token
     ON CONFLICT (deployment_id, day, endpoint, token_id) DO UPDATE
       SET tasks = kept.tasks + excluded.tasks, run_ms = kept.run_ms + excluded.run_ms,
         gpu_ms = kept.gpu_ms + excluded.gpu_ms, bytes_in = kept.bytes_in + excluded.bytes_in,
         bytes_out = kept.bytes_out + excluded.bytes_out
   ), reported AS (
     INSERT INTO usage_units AS kept (deployment_id, day, endpoint, token_id, unit, amount)
     SELECT deployment_id, day, endpoint, coalesce(token_id, '') AS token, unit.key,
       sum(unit.value::double precision)
     FROM gone, unnest(units) AS report, json_each_text(report::json) AS unit
     WHERE units IS NOT NULL GROUP BY deployment_id, day, endpoint, token, unit.key
     ORDER BY deployment_id, day, endpoint, token, unit.key
     ON CONFLICT (deployment_id, day, endpoint, token_id, unit) DO UPDATE
       SET amount = kept.amount + excluded.amount
   )`;

/** Deltas are never updated, so their physical location (`ctid`) identifies them. */
export const FOLD = statement(
  `WITH gone AS (
     DELETE FROM queue_count_deltas WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM queue_count_deltas LIMIT ${MAX_FOLDED_DELTAS} FOR UPDATE SKIP LOCKED))
     RETURNING ${DELTA_COLUMNS}
   ), ${FOLD_USAGE}
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
