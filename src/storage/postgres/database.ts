/**
 * The connection pool to Postgres that the operations of this folder use.
 *
 * Every query has two timeouts: the server's ends a statement that takes too
 * long, ours ends the wait for a server that does not respond. A connection
 * with any error is closed, and the next query opens another: that is the whole
 * of reconnecting. With several hosts, the one that answered last is tried
 * first, and a host that may not write is passed over like one that is away.
 */
import pg from "pg";
import { Hosts } from "../postgres-address.ts";
import { unavailable } from "../unavailable.ts";
import { type ConnectionOptions, connectionConfig, QUERY_TIMEOUT_MARGIN_MS } from "./connection.ts";
import { toStorageError } from "./errors.ts";
import { pipelined } from "./pipeline.ts";
import type { BoundStatement, PostgresRow, Session, Statement } from "./session.ts";
import { examineSession, keepsPrepared, type SessionFacts } from "./session-check.ts";

/** Calls waiting for a connection; further ones are refused rather than kept in memory. */
const MAX_WAITING_QUERIES = 10_000;

/** How long connections may take to close cleanly. */
const CONNECTIONS_END_GRACE_MS = 1_000;

const WRITABLE = "SELECT current_setting('transaction_read_only') AS read_only";

export interface DatabaseOptions extends Omit<ConnectionOptions, "url"> {
  /** The address, of one host or several. */
  readonly url: string;
}

export class PostgresDatabase implements Session, AsyncDisposable {
  readonly #options: DatabaseOptions;
  readonly #hosts: Hosts;
  readonly #pool: pg.Pool;
  readonly #clients = new Set<pg.Client>();
  /** Whether statements are prepared by name; not behind a pooler that mixes the names up. */
  #named = true;
  #ended: Promise<void> | undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    const hosts = new Hosts(options.url);
    this.#hosts = hosts;
    this.#pool = new pg.Pool({
      ...connectionConfig({ ...options, url: hosts.current }),
      Client: class extends pg.Client {
        constructor() {
          super(connectionConfig({ ...options, url: hosts.current }));
        }
      },
      ...(hosts.mustWrite && { onConnect: refuseStandby }),
    });
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

  /**
   * Finds out what the sessions of this address are like, and from then on prepares statements by
   * name only where they stay with their connection.
   */
  async examine(): Promise<SessionFacts> {
    const facts = await this.#use(examineSession);
    if (facts.pooled) {
      this.#named = await keepsPrepared(() => this.#connectOnce());
    }
    return { ...facts, prepared: this.#named };
  }

  /** Opens the connections that stay open. */
  async warm(): Promise<void> {
    const { min = 0 } = this.#pool.options;
    await Promise.all(Array.from({ length: min }, () => this.query(NOTHING)));
  }

  /** Runs one statement as its own transaction. */
  query(statement: Statement, ...values: readonly unknown[]): Promise<PostgresRow[]> {
    return this.#use((client) => this.#ask(client, statement, values));
  }

  script(text: string): Promise<void> {
    return this.#use(async (client) => void (await client.query(text)));
  }

  together(...asked: readonly BoundStatement[]): Promise<PostgresRow[][]> {
    return this.#use((client) => pipelined(client, asked, this.#named));
  }

  /** Runs `work` as one transaction; rolls back and rethrows when it throws. */
  transaction<Result>(
    work: (session: Session) => Promise<Result>,
    timeoutMs?: number,
  ): Promise<Result> {
    return this.#use(async (client) => {
      const session: Session = {
        query: (statement, ...values) => this.#ask(client, statement, values, timeoutMs),
        together: (...asked) =>
          Promise.all(asked.map(([statement, ...values]) => this.#ask(client, statement, values))),
        script: async (text) => void (await client.query(limited({ text }, timeoutMs))),
      };
      const [, result] = await Promise.all([this.#ask(client, BEGIN, []), work(session)]);
      await this.#ask(client, COMMIT, []);
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
      client = await this.#connect();
      const result = await work(client);
      client.release();
      return result;
    } catch (err) {
      // Closing the connection rolls back its transaction.
      client?.release(true);
      throw toStorageError(err);
    }
  }

  /** A connection of the pool, on the first host that answers and may write. */
  async #connect(): Promise<pg.PoolClient> {
    for (let left = this.#hosts.count - 1; ; left -= 1) {
      const tried = this.#hosts.current;
      try {
        return await this.#pool.connect();
      } catch (err) {
        this.#hosts.leave(tried);
        if (left <= 0) {
          throw err;
        }
      }
    }
  }

  /** A connection outside of the pool, to the host that answered last. */
  async #connectOnce(): Promise<pg.Client> {
    const client = new pg.Client(connectionConfig({ ...this.#options, url: this.#hosts.current }));
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  async #ask(
    client: pg.PoolClient,
    { name, text }: Statement,
    values: readonly unknown[],
    timeoutMs?: number,
  ): Promise<PostgresRow[]> {
    const isNamed = name !== undefined && this.#named;
    const config = { text, values: [...values], ...(isNamed && { name }) };
    const { rows } = await client.query<PostgresRow>(limited(config, timeoutMs));
    return rows;
  }
}

const NOTHING: Statement = { text: "SELECT" };
const BEGIN: Statement = { text: "BEGIN" };
const COMMIT: Statement = { text: "COMMIT" };

/** A host that answers and may not write: a standby, while another is the primary. */
export class ReadOnlyHost extends Error {
  readonly code = "25006";
}

async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ read_only: string }>(WRITABLE);
  if (rows[0]?.read_only !== "off") {
    throw new ReadOnlyHost("the host is a standby");
  }
}

/** A query with the time that the node waits for its answer. Default: the connection's. */
function limited(
  config: pg.QueryConfig,
  timeoutMs: number | undefined,
): pg.QueryConfig & { query_timeout?: number } {
  return timeoutMs === undefined
    ? config
    : { ...config, query_timeout: timeoutMs + QUERY_TIMEOUT_MARGIN_MS };
}
