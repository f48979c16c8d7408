import type { MetricsStorage } from "../metrics/metrics.ts";
import { METRICS_OPERATIONS, TIMED } from "../sql/metrics/operations.ts";
import { type Operation, portOver } from "../sql/operation.ts";
import type { PostgresDatabase } from "./database.ts";
import { timed } from "./hosting.ts";
import type { LeaseClock } from "./leases.ts";
import { run } from "./run-operation.ts";

/**
 * The metrics storage port on Postgres; `open` returns the database, or throws
 * when it is not started.
 */
export function postgresMetrics(open: () => PostgresDatabase, clock: LeaseClock): MetricsStorage {
  return portOver(METRICS_OPERATIONS, (name) => {
    const operation = METRICS_OPERATIONS[name] as (parameters: unknown) => Operation<unknown>;
    return async (given: unknown): Promise<unknown> =>
      run(open(), operation(TIMED.has(name) ? await timed(open(), clock, given) : given));
  });
}
