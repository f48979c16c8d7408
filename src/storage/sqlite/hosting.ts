import type { HostingStorage } from "../hosting/hosting.ts";
import { HOSTING_OPERATIONS } from "../sql/hosting/operations.ts";
import { type Runnable, runnable } from "./run.ts";

/** The operations of hosting, as the storage thread runs them beside the queue's. */
export const hostingOperations: Runnable<HostingStorage> = runnable(HOSTING_OPERATIONS);
