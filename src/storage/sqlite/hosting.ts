import type { HostingStorage } from "../hosting/hosting.ts";
import { HOSTING_OPERATIONS } from "../sql/hosting/operations.ts";
import { type Runnable, runnable } from "./run-operation.ts";

const operations: Runnable<HostingStorage> = runnable(HOSTING_OPERATIONS);

/** The hosting operations for the storage thread. */
export const hostingOperations: Runnable<HostingStorage> = {
  ...operations,
  createWebhook(db, parameters) {
    db.webhookOwners.forget();
    return operations.createWebhook(db, parameters);
  },
  pauseEndpoint(db, parameters) {
    db.pausedEndpoints.forget();
    return operations.pauseEndpoint(db, parameters);
  },
  resumeEndpoint(db, parameters) {
    db.pausedEndpoints.forget();
    return operations.resumeEndpoint(db, parameters);
  },
};
