/**
 * How the accounts' SQL is written once for both databases.
 *
 * The queue is asked thousands of times a second, and each adapter has
 * statements of its own for it. Accounts are asked seldom, since what they
 * verify is remembered. So an operation is a generator: it yields statements
 * and is sent their rows, and what runs it is the adapter's (`accounts.ts` in
 * both), inside one transaction. SQLite runs it without waiting, Postgres
 * waits for each answer.
 *
 * Statements use what both understand: `?` for values (Postgres is given
 * `$1`, `$2` …), ON CONFLICT, RETURNING, string_agg, booleans as 0 and 1,
 * times as milliseconds, JSON as text. Values come back as numbers, strings
 * and null; only a comparison in a list of columns is a boolean in Postgres.
 */
export interface Query {
  readonly sql: string;
  readonly values: readonly (string | number | null)[];
  /** Of a statement that is asked often: Postgres keeps its plan under this name. */
  readonly name?: string;
}

/** Answers with its result once it has been sent the rows of everything it asked. */
export type Operation<Result> = Generator<Query, Result, readonly unknown[]>;

type Method = (...parameters: never[]) => Promise<unknown>;

/** What a method of a port is asked with. */
export type ParametersOf<Port, Name extends keyof Port> = Port[Name] extends Method
  ? Parameters<Port[Name]>[0]
  : never;

/** What a method of a port answers. */
export type MethodResult<Port, Name extends keyof Port> = Port[Name] extends Method
  ? Awaited<ReturnType<Port[Name]>>
  : never;

/** Every method of a port as an operation. */
export type OperationsOf<Port> = {
  readonly [Name in keyof Port]: (
    parameters: ParametersOf<Port, Name>,
  ) => Operation<MethodResult<Port, Name>>;
};

/** The port of these operations, as an adapter answers it: `ask` makes the method of a name. */
export function portOver<Port>(
  operations: OperationsOf<Port>,
  ask: (name: keyof Port) => unknown,
): Port {
  const names = Object.keys(operations) as (keyof Port)[];
  return Object.fromEntries(names.map((name) => [name, ask(name)])) as Port;
}

export type Value = string | number | boolean | null | undefined;

/** Asks one statement; answers its rows, as `Row` describes them. */
export function* query<Row>(sql: string, ...values: Value[]): Operation<readonly Row[]> {
  const rows = yield { sql, values: values.map(toStored) };
  return rows as readonly Row[];
}

/** The same for a statement that is asked often; its text must follow from its name. */
export function* prepared<Row>(
  name: string,
  sql: string,
  ...values: Value[]
): Operation<readonly Row[]> {
  const rows = yield { name, sql, values: values.map(toStored) };
  return rows as readonly Row[];
}

/** Postgres cannot keep U+0000 in text: in both databases it becomes U+FFFD. */
function toStored(value: Value): string | number | null {
  switch (typeof value) {
    case "string":
      return value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
    case "boolean":
      return value ? 1 : 0;
    default:
      return value ?? null;
  }
}

/** `(?, ?), (?, ?)` for as many rows of as many columns. */
export function placeholders(rows: number, columns: number): string {
  const row = `(${Array(columns).fill("?").join(", ")})`;
  return Array(rows).fill(row).join(", ");
}

/** Lists in pieces, so that no statement has more values than a database takes. */
export function pieces<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
