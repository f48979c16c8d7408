import type { Operation, OperationsOf, ParametersOf, ResultOf } from "../sql/operation.ts";
import type { Database } from "./database.ts";

/** Carries out an operation that is written for both databases at once, inside the transaction that is open. */
export function run<Result>(db: Database, operation: Operation<Result>): Result {
  let step = operation.next([]);
  while (!step.done) {
    const { sql, values } = step.value;
    step = operation.next(db.all(sql, ...values));
  }
  return step.value;
}

/** The operations of a port, each on an open database and with its parameters. */
export type Runnable<Port> = {
  readonly [Name in keyof Port]: (
    db: Database,
    parameters: ParametersOf<Port, Name>,
  ) => ResultOf<Port, Name>;
};

/** Operations that are written for both databases, as the storage thread runs them beside the queue's. */
export function runnable<Port>(operations: OperationsOf<Port>): Runnable<Port> {
  const entries = Object.entries<(parameters: never) => Operation<unknown>>(operations);
  return Object.fromEntries(
    entries.map(([name, operation]) => [
      name,
      (db: Database, parameters: never) => run(db, operation(parameters)),
    ]),
  ) as Runnable<Port>;
}
