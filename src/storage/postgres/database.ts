/**
 * Connections to Postgres: what the operations of this folder work on.
 *
 * Every question has two timeouts: the server's ends a statement that takes
 * too long, ours ends the wait for a server that has gone silent. A connection
 * on which anything went wrong is thrown away, and the next question opens
 * another one: that is the whole of reconnecting.
 *
 * The planner's statistics always lag behind a queue, which is empty at one
 * moment and long at the next, and a plan is kept for the life of a
 * connection. Every statement here has an index that fits, so the plans that
 * would only win on stale numbers (reading a table from end to end, sorting or
 * hashing it) are priced out of the choice. What is left to the statements:
 * where a table is joined with a list of keys, nothing else in its conditions
 * may lead to an index, or all that is behind that index is read first.
 */
import pg from "pg";
import { unavailable } from "../unavailable.ts";
import { toStorageError } from "./errors.ts";
import type { BoundStatement, PostgresRow, Session, Statement } from "./session.ts";

const SETTINGS = {
  // Wherever the server's administrator relaxed it: an answer means that it is on disk.
  synchronous_commit: "on",
  default_transaction_isolation: "read\\ committed",
  enable_seqscan: "off",
  enable_sort: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};

/** Calls that may wait for a connection; more are refused rather than kept in memory. */
const MAX_WAITING = 10_000;

/** How much longer than the server we wait: its own error says more. */
const EXTRA_WAIT_MS = 1_000;

/** How long connections may take to end in good order. */
const END_GRACE_MS = 1_000;

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
    // An idle connection broke. The pool has dropped it; the next question opens another.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      this.#clients.add(client);
      // It broke between two statements; the next one fails. Unheard, it would end the process.
      client.on("error", () => undefined);
    });
    this.#pool.on("remove", (client) => this.#clients.delete(client));
  }

  /** One statement, a transaction of its own. */
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

  /** Runs `work` as one transaction; what it threw is thrown after the rollback. */
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

  /** Ends the connections; those of a server that does not answer are cut. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    const cut = setTimeout(() => {
      for (const client of this.#clients) {
        client.connection.stream.destroy();
      }
    }, END_GRACE_MS);
    await this.#pool.end();
    clearTimeout(cut);
  }

  async #use<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#ended || this.#pool.waitingCount >= MAX_WAITING) {
      throw unavailable(new Error(`${this.#pool.waitingCount} calls wait for a connection`));
    }
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      const result = await work(client);
      client.release();
      return result;
    } catch (err) {
      // Closing the connection rolls back whatever it had begun.
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
    ...(timeoutMs !== undefined && { query_timeout: timeoutMs + EXTRA_WAIT_MS }),
  };
  const { rows } = await client.query<PostgresRow>(config);
  return rows;
}

/** How to connect, for the pool and for the notifier's own connection. */
export function connectionConfig(options: DatabaseOptions): pg.PoolConfig {
  const { schema, connections, timeoutMs } = options;
  const settings = Object.entries({ ...SETTINGS, search_path: schema });
  // What stands in the address wins over what stands beside it, so ours goes behind its own.
  const url = new URL(options.url);
  const own = url.searchParams.get("options") ?? "";
  const ours = settings.map(([name, value]) => `-c ${name}=${value}`).join(" ");
  url.searchParams.set("options", `${own} ${ours}`);
  return {
    connectionString: url.href,
    application_name: "tessera",
    max: connections,
    idleTimeoutMillis: 60_000,
    connectionTimeoutMillis: timeoutMs,
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + EXTRA_WAIT_MS,
    // A node that froze in the middle of a transaction must not hold its locks.
    idle_in_transaction_session_timeout: 2 * timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    pipeline: true,
    types: {
      getTypeParser: ((oid: number, format?: "text") =>
        oid === INT8_OID
          ? Number
          : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  } as pg.PoolConfig;
}
