import type { HostingStorage } from "../hosting/hosting.ts";
import { HOSTING_OPERATIONS } from "../sql/hosting/operations.ts";
import { type Runnable, runnable } from "./run-operation.ts";

/** The hosting operations for the storage thread. */
export const hostingOperations: Runnable<HostingStorage> = runnable(HOSTING_OPERATIONS);
