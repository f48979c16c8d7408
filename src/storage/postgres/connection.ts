/**
 * The configuration of connections to Postgres, and the settings of their sessions.
 *
 * The planner's statistics always lag behind a queue, which is empty at one
 * moment and long at the next, and a plan is kept for the life of a connection.
 * Every statement here has a matching index, so the plans that only win on
 * stale statistics (sequential scans, sorts, hashes) are priced out. One rule
 * is left to the statements: where a table is joined with a list of keys, no
 * other condition may match an index, or the planner may read all of that index
 * first.
 *
 * All settings travel in one startup parameter, `options`, so that a pooler that
 * knows none of them has to be told to ignore just that one. What it then drops
 * is found at the start (`session-check.ts`).
 */
import pg from "pg";

/** How long Postgres may take to answer one statement by default. */
export const DEFAULT_STATEMENT_TIMEOUT_MS = 5_000;

/**
 * How much longer than the server the node waits for a statement, because the server's own
 * error says more.
 */
export const QUERY_TIMEOUT_MARGIN_MS = 1_000;

/** How long an unused connection to Postgres stays open. */
const IDLE_CONNECTION_TIMEOUT_MS = 60_000;

/**
 * Connections that stay open however long they are not used: a new one costs six round trips, which
 * the first submit of a quiet minute would wait for. A submit asks two questions at a time at most,
 * and maintenance one beside it.
 */
const MIN_CONNECTIONS = 3;

/** Silence after which TCP probes a connection to Postgres. */
const TCP_KEEP_ALIVE_DELAY_MS = 10_000;

const INT8_OID = 20;

/** Settings without which something acknowledged could be lost, or a transaction read wrongly. */
export const REQUIRED_SETTINGS = {
  // Overrides a relaxed server setting: an acknowledged commit is on disk.
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
};

/** Settings that keep statements quick. */
export const PLANNER_SETTINGS = {
  enable_seqscan: "off",
  enable_sort: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};

export interface ConnectionOptions {
  /** The address of one host. */
  readonly url: string;
  readonly schema: string;
  readonly connections: number;
  readonly timeoutMs: number;
}

/** The driver's configuration, for a pool and for single connections. */
export function connectionConfig(options: ConnectionOptions): pg.PoolConfig {
  const { schema, connections, timeoutMs } = options;
  const settings = {
    ...REQUIRED_SETTINGS,
    ...PLANNER_SETTINGS,
    search_path: schema,
    statement_timeout: String(timeoutMs),
    // A node that freezes during a transaction must not keep its locks.
    idle_in_transaction_session_timeout: String(2 * timeoutMs),
  };
  // Options in the address override those beside it, so ours are appended to
  // the address's own.
  const url = new URL(options.url);
  url.searchParams.delete("target_session_attrs");
  const own = url.searchParams.get("options") ?? "";
  const ours = Object.entries(settings).map(
    ([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`,
  );
  url.searchParams.set("options", `${own} ${ours.join(" ")}`.trim());
  return {
    connectionString: url.href,
    application_name: "tessera",
    max: connections,
    min: Math.min(connections, MIN_CONNECTIONS),
    idleTimeoutMillis: IDLE_CONNECTION_TIMEOUT_MS,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs + QUERY_TIMEOUT_MARGIN_MS,
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
