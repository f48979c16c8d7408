/**
 * SQL written once for both databases, as generators.
 *
 * The queue runs thousands of queries a second, so each adapter has its own
 * statements for it. Queries about accounts and hosting are rare, because nodes
 * cache the results. So their operations are generators: they yield statements
 * and receive rows, and the adapter runs them (`run-operation.ts` in both) inside one
 * transaction. SQLite runs them synchronously, Postgres awaits each result.
 *
 * Statements use the common subset: `?` for values (Postgres is given `$1`,
 * `$2` …), ON CONFLICT, RETURNING, string_agg, booleans as 0 and 1, times as
 * milliseconds, JSON as text. Values come back as numbers, strings and null;
 * only a comparison in a list of columns is a boolean in Postgres.
 */
export interface Query {
  readonly sql: string;
  readonly values: readonly (string | number | null)[];
  /** For frequent statements: Postgres caches the plan under this name. */
  readonly name?: string;
}

/** A generator of queries; it returns its result after receiving all rows. */
export type Operation<Result> = Generator<Query, Result, readonly unknown[]>;

type Method = (...parameters: never[]) => Promise<unknown>;

/** The parameters of a port's method. */
export type ParametersOf<Port, Name extends keyof Port> = Port[Name] extends Method
  ? Parameters<Port[Name]>[0]
  : never;

/** The result of a port's method. */
export type MethodResult<Port, Name extends keyof Port> = Port[Name] extends Method
  ? Awaited<ReturnType<Port[Name]>>
  : never;

/** A port with every method as an operation. */
export type OperationsOf<Port> = {
  readonly [Name in keyof Port]: (
    parameters: ParametersOf<Port, Name>,
  ) => Operation<MethodResult<Port, Name>>;
};

/** Builds a port from its operations; `ask` makes the method of each name. */
export function portOver<Port>(
  operations: OperationsOf<Port>,
  ask: (name: keyof Port) => unknown,
): Port {
  const names = Object.keys(operations) as (keyof Port)[];
  return Object.fromEntries(names.map((name) => [name, ask(name)])) as Port;
}

export type Value = string | number | boolean | null | undefined;

/** Runs one statement; returns its rows as `Row`. */
export function* query<Row>(sql: string, ...values: Value[]): Operation<readonly Row[]> {
  const rows = yield { sql, values: values.map(toStored) };
  return rows as readonly Row[];
}

/** Runs a frequent statement; its name must determine its text. */
export function* prepared<Row>(
  name: string,
  sql: string,
  ...values: Value[]
): Operation<readonly Row[]> {
  const rows = yield { name, sql, values: values.map(toStored) };
  return rows as readonly Row[];
}

/** Converts a text for storage. Postgres has no U+0000 in text, so both databases get U+FFFD instead. */
export function toStoredText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}

function toStored(value: Value): string | number | null {
  switch (typeof value) {
    case "string":
      return toStoredText(value);
    case "boolean":
      return value ? 1 : 0;
    default:
      return value ?? null;
  }
}

/** Returns placeholders such as `(?, ?), (?, ?)`. */
export function placeholders(rows: number, columns: number): string {
  const row = `(${Array(columns).fill("?").join(", ")})`;
  return Array(rows).fill(row).join(", ");
}

/** Splits a list into pieces, so that no statement exceeds a database's limit of values. */
export function pieces<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
