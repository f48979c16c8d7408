/**
 * The connection pool to Postgres that the operations of this folder use.
 *
 * Every query has two timeouts: the server's ends a statement that takes too
 * long, ours ends the wait for a server that does not respond. A connection
 * with any error is closed, and the next query opens another: that is the whole
 * of reconnecting.
 *
 * The planner's statistics always lag behind a queue, which is empty at one
 * moment and long at the next, and a plan is kept for the life of a connection.
 * Every statement here has a matching index, so the plans that only win on
 * stale statistics (sequential scans, sorts, hashes) are priced out. One rule
 * is left to the statements: where a table is joined with a list of keys, no
 * other condition may match an index, or the planner may read all of that index
 * first.
 */
import pg from "pg";
import { unavailable } from "../unavailable.ts";
import { toStorageError } from "./errors.ts";
import type { BoundStatement, PostgresRow, Session, Statement } from "./session.ts";

const SETTINGS = {
  // Overrides a relaxed server setting: an acknowledged commit is on disk.
  synchronous_commit: "on",
  default_transaction_isolation: "read\\ committed",
  enable_seqscan: "off",
  enable_sort: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};

/** Calls waiting for a connection; further ones are refused rather than kept in memory. */
const MAX_WAITING_QUERIES = 10_000;

/**
 * How much longer than the server the node waits for a statement, because the server's own
 * error says more.
 */
const QUERY_TIMEOUT_MARGIN_MS = 1_000;

/** How long connections may take to close cleanly. */
const CONNECTIONS_END_GRACE_MS = 1_000;

/** How long Postgres may take to answer one statement by default. */
export const DEFAULT_STATEMENT_TIMEOUT_MS = 5_000;

/** How long an unused connection to Postgres stays open. */
const IDLE_CONNECTION_TIMEOUT_MS = 60_000;

/** Silence after which TCP probes a connection to Postgres. */
const TCP_KEEP_ALIVE_DELAY_MS = 10_000;

const INT8_OID = 20;

export interface DatabaseOptions {
  readonly url: string;
  readonly schema: string;
  readonly connections: number;
  readonly timeoutMs: number;
}

export class PostgresDatabase implements Session, AsyncDisposable {
  readonly #pool: pg.Pool;
  readonly #clients = new Set<pg.Client>();
  #ended: Promise<void> | undefined;

  constructor(options: DatabaseOptions) {
    this.#pool = new pg.Pool(connectionConfig(options));
    // An idle connection broke. The pool has dropped it; the next query opens
    // another.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      this.#clients.add(client);
      // It broke between two statements; the next one fails. Without a listener the
      // error would end the process.
      client.on("error", () => undefined);
    });
    this.#pool.on("remove", (client) => this.#clients.delete(client));
  }

  /** Runs one statement as its own transaction. */
  query(statement: Statement, ...values: readonly unknown[]): Promise<PostgresRow[]> {
    return this.#use((client) => ask(client, statement, values));
  }

  script(text: string): Promise<void> {
    return this.#use(async (client) => void (await client.query(text)));
  }

  together(...asked: readonly BoundStatement[]): Promise<PostgresRow[][]> {
    return this.#use(async (client) => {
      const [, ...answers] = await Promise.all([
        ask(client, BEGIN, []),
        ...asked.map(([statement, ...values]) => ask(client, statement, values)),
        ask(client, COMMIT, []),
      ]);
      return answers.slice(0, -1);
    });
  }

  /** Runs `work` as one transaction; rolls back and rethrows when it throws. */
  transaction<Result>(
    work: (session: Session) => Promise<Result>,
    timeoutMs?: number,
  ): Promise<Result> {
    return this.#use(async (client) => {
      const session: Session = {
        query: (statement, ...values) => ask(client, statement, values, timeoutMs),
        together: (...asked) =>
          Promise.all(asked.map(([statement, ...values]) => ask(client, statement, values))),
        script: async (text) => void (await client.query(text)),
      };
      const [, result] = await Promise.all([ask(client, BEGIN, []), work(session)]);
      await ask(client, COMMIT, []);
      return result;
    });
  }

  /** Closes the connections; cuts those that do not close in time. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    const cut = setTimeout(() => {
      for (const client of this.#clients) {
        client.connection.stream.destroy();
      }
    }, CONNECTIONS_END_GRACE_MS);
    await this.#pool.end();
    clearTimeout(cut);
  }

  async #use<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#ended || this.#pool.waitingCount >= MAX_WAITING_QUERIES) {
      throw unavailable(new Error(`${this.#pool.waitingCount} calls wait for a connection`));
    }
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      const result = await work(client);
      client.release();
      return result;
    } catch (err) {
      // Closing the connection rolls back its transaction.
      client?.release(true);
      throw toStorageError(err);
    }
  }
}

const BEGIN: Statement = { text: "BEGIN" };
const COMMIT: Statement = { text: "COMMIT" };

async function ask(
  client: pg.PoolClient,
  { name, text }: Statement,
  values: readonly unknown[],
  timeoutMs?: number,
): Promise<PostgresRow[]> {
  const config: pg.QueryConfig & { query_timeout?: number } = {
    text,
    values: [...values],
    ...(name !== undefined && { name }),
    ...(timeoutMs !== undefined && { query_timeout: timeoutMs + QUERY_TIMEOUT_MARGIN_MS }),
  };
  const { rows } = await client.query<PostgresRow>(config);
  return rows;
}

/** Connection settings for the pool and for the notifier's own connection. */
export function connectionConfig(options: DatabaseOptions): pg.PoolConfig {
  const { schema, connections, timeoutMs } = options;
  const settings = Object.entries({ ...SETTINGS, search_path: schema });
  // Options in the address override those beside it, so ours are appended to
  // the address's own.
  const url = new URL(options.url);
  const own = url.searchParams.get("options") ?? "";
  const ours = settings.map(([name, value]) => `-c ${name}=${value}`).join(" ");
  url.searchParams.set("options", `${own} ${ours}`);
  return {
    connectionString: url.href,
    application_name: "tessera",
    max: connections,
    idleTimeoutMillis: IDLE_CONNECTION_TIMEOUT_MS,
    connectionTimeoutMillis: timeoutMs,
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + QUERY_TIMEOUT_MARGIN_MS,
    // A node that freezes during a transaction must not keep its locks.
    idle_in_transaction_session_timeout: 2 * timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: TCP_KEEP_ALIVE_DELAY_MS,
    pipeline: true,
    types: {
      getTypeParser: ((oid: number, format?: "text") =>
        oid === INT8_OID
          ? Number
          : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  } as pg.PoolConfig;
}
