import type { MetricsStorage } from "../metrics/metrics.ts";
import { METRICS_OPERATIONS } from "../sql/metrics/operations.ts";
import { type Runnable, runnable } from "./run-operation.ts";

/** The metrics operations for the storage thread. */
export const metricsOperations: Runnable<MetricsStorage> = runnable(METRICS_OPERATIONS);
