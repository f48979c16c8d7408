import { METRICS_OPERATIONS } from "../metrics/operations.ts";
import { runnable } from "./run.ts";

/** The operations on samples, as the storage thread runs them beside the queue's. */
export const metricsOperations = runnable(METRICS_OPERATIONS);
