/**
 * Several statements as one question to Postgres: they are sent together, with one Sync at the end
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING). Until the
 * Sync they are one transaction, which ends with it: they need no BEGIN and no COMMIT, and the
 * server wakes up and answers once instead of once for each. When one fails, the others are undone
 * or skipped.
 *
 * The driver has a query of one statement, which sends its own Sync. This one takes its place in
 * the driver's queue, and the driver collects the rows of each statement as it does for scripts.
 */
import pg from "pg";
import type { BoundStatement, PostgresRow } from "./session.ts";

/** What this uses of the driver's connection. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void };
  /** The texts of the prepared statements, by name. */
  readonly parsedStatements: Record<string, string>;
  parse(statement: { readonly name: string | undefined; readonly text: string }): void;
  bind(bound: {
    readonly statement: string | undefined;
    readonly values: readonly unknown[];
    readonly valueMapper: (value: unknown) => unknown;
  }): void;
  describe(what: { readonly type: "P" }): void;
  execute(): void;
  sync(): void;
}

type Answered = (err: Error | null, results: unknown) => void;

interface Result {
  readonly rows: PostgresRow[];
}

const { prepareValue } = (
  pg as unknown as { readonly utils: { prepareValue(value: unknown): unknown } }
).utils;

class Pipeline extends pg.Query {
  readonly #asked: readonly BoundStatement[];
  readonly #named: boolean;

  constructor(asked: readonly BoundStatement[], named: boolean, callback: Answered) {
    super("", callback as never);
    this.#asked = asked;
    this.#named = named;
  }

  override readonly submit = (to: unknown): null => {
    const connection = to as Connection;
    connection.stream.cork();
    for (const [{ name, text }, ...values] of this.#asked) {
      const statement = this.#named ? name : undefined;
      if (statement === undefined || connection.parsedStatements[statement] === undefined) {
        connection.parse({ name: statement, text });
      }
      if (statement !== undefined) {
        // Where it fails, so does the connection.
        connection.parsedStatements[statement] = text;
      }
      connection.bind({ statement, values, valueMapper: prepareValue });
      connection.describe({ type: "P" });
      connection.execute();
    }
    connection.sync();
    connection.stream.uncork();
    return null;
  };
}

/**
 * Runs statements as one transaction, in one round trip; resolves with the rows of each. After an
 * error the connection cannot be used any more. `named`: whether statements are prepared by name.
 */
export function pipelined(
  client: pg.ClientBase,
  asked: readonly BoundStatement[],
  named: boolean,
): Promise<PostgresRow[][]> {
  return new Promise((resolve, reject) => {
    const answered: Answered = (err, results) => {
      if (err) {
        reject(err);
      } else {
        const each = Array.isArray(results) ? (results as Result[]) : [results as Result];
        resolve(each.map(({ rows }) => rows));
      }
    };
    client.query(new Pipeline(asked, named, answered));
  });
}
