import { ACCOUNT_OPERATIONS } from "../accounts/operations.ts";
import { runnable } from "./run.ts";

/** The operations of the accounts, as the storage thread runs them beside the queue's. */
export const accountOperations = runnable(ACCOUNT_OPERATIONS);
