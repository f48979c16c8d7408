import type { MethodResult, Operation, OperationsOf, ParametersOf } from "../sql/operation.ts";
import type { SqliteDatabase } from "./database.ts";

/** Carries out an operation that is written for both databases at once, inside the transaction that is open. */
export function run<Result>(db: SqliteDatabase, operation: Operation<Result>): Result {
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
    db: SqliteDatabase,
    parameters: ParametersOf<Port, Name>,
  ) => MethodResult<Port, Name>;
};

/** Operations that are written for both databases, as the storage thread runs them beside the queue's. */
export function runnable<Port>(operations: OperationsOf<Port>): Runnable<Port> {
  const entries = Object.entries<(parameters: never) => Operation<unknown>>(operations);
  return Object.fromEntries(
    entries.map(([name, operation]) => [
      name,
      (db: SqliteDatabase, parameters: never) => run(db, operation(parameters)),
    ]),
  ) as Runnable<Port>;
}
