import {
  HOSTING_OPERATIONS,
  type HostingOperationName,
  type HostingParameters,
  type HostingResult,
} from "../hosting/operations.ts";
import type { Database } from "./database.ts";
import { run } from "./run.ts";

type HostingOperations = {
  readonly [Name in HostingOperationName]: (
    db: Database,
    parameters: HostingParameters<Name>,
  ) => HostingResult<Name>;
};

/** The operations of hosting, as the storage thread runs them beside the queue's. */
export const hostingOperations = Object.fromEntries(
  Object.entries(HOSTING_OPERATIONS).map(([name, operation]) => [
    name,
    (db: Database, parameters: never) => run<unknown>(db, operation(parameters)),
  ]),
) as unknown as HostingOperations;
