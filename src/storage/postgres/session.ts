/** A question to Postgres; with a name it is parsed and planned once per connection. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

export type PostgresRow = Readonly<Record<string, unknown>>;

/** A statement with its values. */
export type BoundStatement = readonly [Statement, ...unknown[]];

/** What the operations of this folder ask: a pool of connections, or one inside a transaction. */
export interface Session {
  query(statement: Statement, ...values: readonly unknown[]): Promise<PostgresRow[]>;
  /** Statements that do not need each other's answers: one transaction, one round trip. */
  together(...asked: readonly BoundStatement[]): Promise<PostgresRow[][]>;
  /** Several statements without parameters. */
  script(text: string): Promise<void>;
}

/** A statement that is asked seldom. */
export function statement(text: string): Statement {
  return { text };
}

/** A statement that is asked often; `name` is unique in the program. */
export function prepared(name: string, text: string): Statement {
  if (PREPARED.has(name)) {
    throw new Error(`two statements are named ${name}`);
  }
  const statement = { name, text };
  PREPARED.set(name, statement);
  return statement;
}

/** All of them, so that a test can look at how Postgres carries them out. */
export const PREPARED = new Map<string, Statement>();
