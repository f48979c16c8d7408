import { HOSTING_OPERATIONS } from "../hosting/operations.ts";
import { runnable } from "./run.ts";

/** The operations of hosting, as the storage thread runs them beside the queue's. */
export const hostingOperations = runnable(HOSTING_OPERATIONS);
