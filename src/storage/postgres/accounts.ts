import type { Accounts } from "../accounts/accounts.ts";
import { ACCOUNT_OPERATIONS, READS } from "../sql/accounts/operations.ts";
import { type Operation, portOver } from "../sql/operation.ts";
import type { PostgresDatabase } from "./database.ts";
import { run } from "./run-operation.ts";

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
