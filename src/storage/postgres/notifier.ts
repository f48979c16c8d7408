/**
 * The notifier on Postgres: hints between nodes by LISTEN and NOTIFY, on a
 * dedicated connection.
 *
 * A notification takes a server-wide lock when it commits, so each node sends
 * at most one at a time, with all hints of a short interval (debounce). A lost
 * connection is reopened without a limit of attempts. It is also queried
 * periodically, because a connection that only listens does not notice when the
 * server is gone. Hints may have been lost in between, so every reconnect emits
 * a general hint.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Hint, Notifier } from "../notifier.ts";
import { connectionConfig, DEFAULT_STATEMENT_TIMEOUT_MS } from "./database.ts";
import { HintBatch, LOOK, readHints } from "./hint-codec.ts";

/** Time in which hints are gathered to travel together. */
const HINT_DEBOUNCE_MS = 10;

/** Interval at which the connection that listens for hints is checked with a query. */
const LISTENER_HEARTBEAT_INTERVAL_MS = 15_000;

/** Pause before a lost connection for hints is opened again: from half of it to the whole. */
const LISTENER_RECONNECT_PAUSE_MS = 1_000;

export interface PostgresNotifierOptions {
  /** The schema of the tables, which also names the channel. Default `tessera`. */
  readonly schema?: string;
  /** How long the database may take to respond, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number;
}

export class PostgresNotifier implements Notifier {
  readonly #config: pg.ClientConfig;
  readonly #channel: string;
  readonly #self = randomUUID();
  readonly #listeners = new Set<(hint: Hint) => void>();
  readonly #pending = new HintBatch();
  readonly #closed = new AbortController();
  #client: pg.Client | undefined;
  #flush: NodeJS.Timeout | undefined;
  #flushing = false;
  #running: Promise<void> | undefined;

  constructor(url: string, options: PostgresNotifierOptions = {}) {
    const { schema = "tessera", timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS } = options;
    this.#config = connectionConfig({ url, schema, connections: 1, timeoutMs });
    this.#channel = schema;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  publish(hint: Hint): void {
    this.#pending.add(hint);
    this.#schedule();
  }

  subscribe(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#flush);
    this.#closed.abort();
    this.#client?.connection.stream.destroy();
    await this.#running;
  }

  /** The reconnect loop. */
  async #run(): Promise<void> {
    const { signal } = this.#closed;
    let first = true;
    while (!signal.aborted) {
      try {
        await this.#listen(first);
      } catch {
        // The loop reconnects after every kind of loss.
      }
      first = false;
      const pauseMs = LISTENER_RECONNECT_PAUSE_MS * (0.5 + Math.random() / 2);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Rejects when the connection is lost. */
  async #listen(first: boolean): Promise<void> {
    const { signal } = this.#closed;
    const client = new pg.Client(this.#config);
    const lost = once(client, "end");
    // The connection may be lost during a query, which then reports it.
    lost.catch(() => undefined);
    client.on("error", () => client.connection.stream.destroy());
    client.on("notification", ({ payload = "" }) => {
      for (const hint of readHints(payload, this.#self)) {
        this.#tell(hint);
      }
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
      this.#client = client;
      if (!first) {
        this.#tell(LOOK);
      }
      this.#schedule();
      while (!signal.aborted) {
        const ended = await Promise.race([
          lost,
          sleep(LISTENER_HEARTBEAT_INTERVAL_MS, "beat", { signal }),
        ]);
        if (ended !== "beat") {
          return;
        }
        await client.query("SELECT 1");
      }
    } finally {
      this.#client = undefined;
      client.connection.stream.destroy();
    }
  }

  #tell(hint: Hint): void {
    for (const listener of this.#listeners) {
      listener(hint);
    }
  }

  #schedule(): void {
    if (this.#flush || this.#flushing || this.#pending.isEmpty || !this.#client) {
      return;
    }
    this.#flush = setTimeout(() => void this.#send(), HINT_DEBOUNCE_MS).unref();
  }

  async #send(): Promise<void> {
    this.#flush = undefined;
    const client = this.#client;
    if (client === undefined || this.#pending.isEmpty) {
      return;
    }
    this.#flushing = true;
    try {
      const text = this.#pending.take(this.#self);
      await client.query("SELECT pg_notify($1, $2)", [this.#channel, text]);
    } catch {
      // It is unknown whether it was sent, so the next connection sends a general
      // hint.
      this.#pending.add(LOOK);
      client.connection.stream.destroy();
    } finally {
      this.#flushing = false;
      this.#schedule();
    }
  }
}
