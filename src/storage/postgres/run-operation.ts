import type { Operation, Query } from "../sql/operation.ts";
import type { Session, Statement } from "./session.ts";

/** A cache of translated statements by their original text; there are few. */
const statements = new Map<string, Statement>();

function statementOf({ sql, name }: Query): Statement {
  let statement = statements.get(sql);
  if (statement === undefined) {
    let number = 0;
    const text = sql.replace(/\?/g, () => {
      number += 1;
      return `$${number}`;
    });
    statement = { text, ...(name !== undefined && { name }) };
    statements.set(sql, statement);
  }
  return statement;
}

/** Runs an operation of `storage/sql`, one query after the other. */
export async function run<Result>(
  session: Pick<Session, "query">,
  operation: Operation<Result>,
): Promise<Result> {
  let step = operation.next([]);
  while (!step.done) {
    step = operation.next(await session.query(statementOf(step.value), ...step.value.values));
  }
  return step.value;
}
