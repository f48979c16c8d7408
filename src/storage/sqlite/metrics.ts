import {
  METRICS_OPERATIONS,
  type MetricsOperationName,
  type MetricsParameters,
  type MetricsResult,
} from "../metrics/operations.ts";
import type { Database } from "./database.ts";
import { run } from "./run.ts";

type MetricsOperations = {
  readonly [Name in MetricsOperationName]: (
    db: Database,
    parameters: MetricsParameters<Name>,
  ) => MetricsResult<Name>;
};

/** The operations on samples, as the storage thread runs them beside the queue's. */
export const metricsOperations = Object.fromEntries(
  Object.entries(METRICS_OPERATIONS).map(([name, operation]) => [
    name,
    (db: Database, parameters: never) => run<unknown>(db, operation(parameters)),
  ]),
) as unknown as MetricsOperations;
