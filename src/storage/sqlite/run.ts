import type { Operation } from "../accounts/operation.ts";
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
