/** The query interface of the Postgres adapter: statements, and sessions that run them. */

/** An SQL statement; with a name, Postgres parses and plans it once per connection. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

export type PostgresRow = Readonly<Record<string, unknown>>;

/** A statement with its values. */
export type BoundStatement = readonly [Statement, ...unknown[]];

/** Runs queries: the connection pool, or one connection inside a transaction. */
export interface Session {
  query(statement: Statement, ...values: readonly unknown[]): Promise<PostgresRow[]>;
  /** Runs independent statements in one transaction and one round trip. */
  together(...asked: readonly BoundStatement[]): Promise<PostgresRow[][]>;
  /** Runs several statements without parameters. */
  script(text: string): Promise<void>;
}

/** A statement for rare queries. */
export function statement(text: string): Statement {
  return { text };
}

/** A prepared statement for frequent queries; `name` is unique in the program. */
export function prepared(name: string, text: string): Statement {
  if (PREPARED.has(name)) {
    throw new Error(`two statements are named ${name}`);
  }
  const statement = { name, text };
  PREPARED.set(name, statement);
  return statement;
}

/** All prepared statements, so that a test can check their query plans. */
export const PREPARED = new Map<string, Statement>();

/**
 * SQL of a subquery that locks rows up to a limit, so that it runs once. Postgres may run it again for
 * each row of the query around it, and then it passes over what is locked and takes as many others.
 */
export function once(query: string): string {
  return `WITH chosen AS MATERIALIZED (${query}) SELECT * FROM chosen`;
}
