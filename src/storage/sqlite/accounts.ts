import type { Accounts } from "../accounts/accounts.ts";
import { ACCOUNT_OPERATIONS } from "../sql/accounts/operations.ts";
import { type Runnable, runnable } from "./run-operation.ts";

/** The account operations for the storage thread. */
export const accountOperations: Runnable<Accounts> = runnable(ACCOUNT_OPERATIONS);
