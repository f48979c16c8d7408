import type { Operation, Query } from "../sql/operation.ts";
import type { Session, Statement } from "./session.ts";

/** Texts as Postgres takes them, by those of the operations, of which there are not many. */
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

/** Carries out an operation that is written for both databases, waiting for each answer. */
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
