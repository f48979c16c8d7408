import {
  ACCOUNT_OPERATIONS,
  type AccountOperationName,
  type AccountParameters,
  type AccountResult,
} from "../accounts/operations.ts";
import type { Database } from "./database.ts";
import { run } from "./run.ts";

type AccountOperations = {
  readonly [Name in AccountOperationName]: (
    db: Database,
    parameters: AccountParameters<Name>,
  ) => AccountResult<Name>;
};

/** The operations of the accounts, as the storage thread runs them beside the queue's. */
export const accountOperations = Object.fromEntries(
  Object.entries(ACCOUNT_OPERATIONS).map(([name, operation]) => [
    name,
    (db: Database, parameters: never) => run<unknown>(db, operation(parameters)),
  ]),
) as unknown as AccountOperations;
