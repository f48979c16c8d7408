/** The hosting port on Postgres. */
import type { HostingStorage } from "../hosting/hosting.ts";
import { BY_ONE_CLOCK, HOSTING_OPERATIONS, SINGLE } from "../sql/hosting/operations.ts";
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
export async function timed(
  db: PostgresDatabase,
  clock: LeaseClock,
  given: unknown,
): Promise<object> {
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
