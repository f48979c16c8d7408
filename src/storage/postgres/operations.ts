/** The ports of accounts, hosting and metrics on Postgres: each operation by its statements. */
import type { Accounts } from "../accounts/accounts.ts";
import type { HostingStorage } from "../hosting/hosting.ts";
import type { MetricsStorage } from "../metrics/metrics.ts";
import { ACCOUNT_OPERATIONS, READS } from "../sql/accounts/operations.ts";
import { BY_ONE_CLOCK, HOSTING_OPERATIONS, SINGLE } from "../sql/hosting/operations.ts";
import { METRICS_OPERATIONS, TIMED } from "../sql/metrics/operations.ts";
import { type Operation, portOver } from "../sql/operation.ts";
import { DatabaseClock } from "./clock.ts";
import type { PostgresDatabase } from "./database.ts";
import type { LeaseClock } from "./leases.ts";
import { run } from "./run-operation.ts";

/** The hosting port; `open` returns the database, or throws when it is not started. */
export function postgresHosting(open: () => PostgresDatabase, clock: LeaseClock): HostingStorage {
  return portOver(HOSTING_OPERATIONS, (name) => {
    const operation = HOSTING_OPERATIONS[name] as (parameters: unknown) => Operation<unknown>;
    return async (given: unknown): Promise<unknown> => {
      const parameters = BY_ONE_CLOCK.has(name) ? await timed(open(), clock, given) : given;
      return name in SINGLE
        ? run(open(), operation(parameters))
        : open().transaction((session) => run(session, operation(parameters)));
    };
  });
}

/** Replaces `nowMs` with the database's time, unless the caller's clock decides. */
async function timed(db: PostgresDatabase, clock: LeaseClock, given: unknown): Promise<object> {
  const parameters = given as { readonly nowMs: number };
  const nowMs = clock(parameters.nowMs) ?? (await clockOf(db).now());
  return { ...parameters, nowMs };
}

const clocks = new WeakMap<PostgresDatabase, DatabaseClock>();

function clockOf(db: PostgresDatabase): DatabaseClock {
  const known = clocks.get(db) ?? new DatabaseClock(db);
  clocks.set(db, known);
  return known;
}

/** The accounts port on Postgres; `open` returns the database, or throws when it is not started. */
export function postgresAccounts(open: () => PostgresDatabase): Accounts {
  return portOver(ACCOUNT_OPERATIONS, (name) => {
    const operation = ACCOUNT_OPERATIONS[name] as (parameters: unknown) => Operation<unknown>;
    return async (parameters: unknown): Promise<unknown> =>
      name in READS
        ? run(open(), operation(parameters))
        : open().transaction((session) => run(session, operation(parameters)));
  });
}

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
