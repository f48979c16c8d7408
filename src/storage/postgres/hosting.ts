import { type Operation, portOver } from "../accounts/operation.ts";
import type { Hosting } from "../hosting/hosting.ts";
import { BY_ONE_CLOCK, HOSTING_OPERATIONS, SINGLE } from "../hosting/operations.ts";
import type { Database } from "./database.ts";
import type { LeaseClock } from "./leases.ts";
import { run } from "./run.ts";
import { prepared } from "./session.ts";

const CLOCK = prepared(
  "clock",
  "SELECT coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint) AS now_ms",
);

/** The hosting port; `open` answers the database, or throws when there is none. */
export function postgresHosting(open: () => Database, clock: LeaseClock): Hosting {
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

/** Parameters with the time of the clock that decides. */
export async function timed(db: Database, clock: LeaseClock, given: unknown): Promise<object> {
  const parameters = given as { readonly nowMs: number };
  const [row] = await db.query(CLOCK, clock(parameters.nowMs));
  return { ...parameters, nowMs: Number(row?.now_ms) };
}
