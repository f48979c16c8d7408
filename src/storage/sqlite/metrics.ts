import type { MetricsStorage } from "../metrics/metrics.ts";
import { METRICS_OPERATIONS } from "../sql/metrics/operations.ts";
import { type Runnable, runnable } from "./run.ts";

/** The operations on samples, as the storage thread runs them beside the queue's. */
export const metricsOperations: Runnable<MetricsStorage> = runnable(METRICS_OPERATIONS);
