import type { Accounts } from "../accounts/accounts.ts";
import { ACCOUNT_OPERATIONS } from "../sql/accounts/operations.ts";
import { type Runnable, runnable } from "./run.ts";

/** The operations of the accounts, as the storage thread runs them beside the queue's. */
export const accountOperations: Runnable<Accounts> = runnable(ACCOUNT_OPERATIONS);
