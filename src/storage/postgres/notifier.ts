/**
 * Hints between nodes by NOTIFY, on a connection of their own.
 *
 * A notification takes a lock of the whole server when it commits, so there is
 * at most one under way per node, with all hints that came together in a short
 * while. The connection is opened again for ever when it is lost, and asked a
 * question now and then, since one that only listens does not notice silence.
 * What was missed in between, nobody can tell: so a general hint follows.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Hint, Notifier } from "../notifier.ts";
import { connectionConfig } from "./database.ts";
import { HintBatch, LOOK, readHints } from "./hints.ts";

/** Hints that come within this time travel together. */
const DEBOUNCE_MS = 10;

const HEARTBEAT_MS = 15_000;

/** Pause before a lost connection is opened again: from half of it to the whole. */
const RECONNECT_MS = 1_000;

export interface PostgresNotifierOptions {
  /** The channel is that of the tables' schema. Default `tessera`. */
  readonly schema?: string;
  /** How long the database may take to answer. Default 5,000. */
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
    const { schema = "tessera", timeoutMs = 5_000 } = options;
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

  /** Listens, on one connection after the other. */
  async #run(): Promise<void> {
    const { signal } = this.#closed;
    let first = true;
    while (!signal.aborted) {
      try {
        await this.#listen(first);
      } catch {
        // However the connection was lost, the next one is opened in a moment.
      }
      first = false;
      const pauseMs = RECONNECT_MS * (0.5 + Math.random() / 2);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Rejects when the connection is lost. */
  async #listen(first: boolean): Promise<void> {
    const { signal } = this.#closed;
    const client = new pg.Client(this.#config);
    const lost = once(client, "end");
    // It may be lost while a question is under way, which then tells of it.
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
        const ended = await Promise.race([lost, sleep(HEARTBEAT_MS, "beat", { signal })]);
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
    this.#flush = setTimeout(() => void this.#send(), DEBOUNCE_MS).unref();
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
      // Whether it was sent is unknown: once more, as a general hint on the next connection.
      this.#pending.add(LOOK);
      client.connection.stream.destroy();
    } finally {
      this.#flushing = false;
      this.#schedule();
    }
  }
}
