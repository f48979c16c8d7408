/** Runs the operations of `storage/sql` on SQLite. */
import type { MethodResult, Operation, OperationsOf, ParametersOf } from "../sql/operation.ts";
import type { SqliteDatabase } from "./database.ts";

/** Runs an operation of `storage/sql` synchronously, inside the open transaction. */
export function run<Result>(db: SqliteDatabase, operation: Operation<Result>): Result {
  let step = operation.next([]);
  while (!step.done) {
    const { sql, values } = step.value;
    step = operation.next(db.all(sql, ...values));
  }
  return step.value;
}

/** The operations of a port as functions of the open database and the parameters. */
export type Runnable<Port> = {
  readonly [Name in keyof Port]: (
    db: SqliteDatabase,
    parameters: ParametersOf<Port, Name>,
  ) => MethodResult<Port, Name>;
};

/** Makes operations of `storage/sql` runnable by the storage thread. */
export function runnable<Port>(operations: OperationsOf<Port>): Runnable<Port> {
  const entries = Object.entries<(parameters: never) => Operation<unknown>>(operations);
  return Object.fromEntries(
    entries.map(([name, operation]) => [
      name,
      (db: SqliteDatabase, parameters: never) => run(db, operation(parameters)),
    ]),
  ) as Runnable<Port>;
}
