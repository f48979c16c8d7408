/**
 * The notifier on Postgres: hints between nodes by LISTEN and NOTIFY, on a
 * dedicated connection.
 *
 * A notification takes a server-wide lock when it commits, so each node sends
 * at most one at a time, with all hints of a short interval (debounce). A lost
 * connection is reopened without a limit of attempts. Hints may have been lost
 * in between, so every reconnect emits a general hint.
 *
 * Listening is tested by a heartbeat, because a connection that only listens
 * notices neither that the server is gone nor that a pooler took its session
 * away, which loses every hint in silence. The heartbeat is a notification to
 * oneself, on a channel of one's own and sent over another connection: over the
 * same one, a pooler might hand it back and still lose those of other nodes.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Hint, Notifier } from "../notifier.ts";
import { Hosts } from "../postgres-address.ts";
import { connectionConfig, DEFAULT_STATEMENT_TIMEOUT_MS } from "./connection.ts";
import { HOLD_SESSION } from "./node-session.ts";

/** Payload of one NOTIFY: Postgres takes less than 8,000 bytes. */
const MAX_NOTIFICATION_BYTES = 7_900;

/** Distinct hints per batch; beyond this, one general hint replaces them. */
const MAX_HINTS_PER_BATCH = 250;

/** Bytes of the keys that a batch names for one endpoint; beyond these, tasks of any key may wait. */
const MAX_KEY_BYTES = 500;

/** Time in which hints are gathered to travel together. */
const HINT_DEBOUNCE_MS = 10;

/** Interval at which the connection that listens for hints is checked with a query. */
const LISTENER_HEARTBEAT_INTERVAL_MS = 15_000;

/** Pause before a lost connection for hints is opened again: from half of it to the whole. */
const LISTENER_RECONNECT_PAUSE_MS = 1_000;

/** How long a heartbeat may take to come back. */
const LISTENER_ECHO_TIMEOUT_MS = 2_000;

/**
 * `up`: hints arrive. `lost`: the connection is being opened again. `deaf`: it is open, and a
 * heartbeat did not come back.
 */
export type NotifierState = "up" | "lost" | "deaf";

interface PostgresNotifierOptions {
  /** The schema of the tables, which also names the channel. Default `tessera`. */
  readonly schema?: string;
  /** The name of the node's session, held while it listens. Default: none. */
  readonly session?: string;
  /** How long the database may take to respond, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number;
  /** Sends an empty notification over another connection than the notifier's own. */
  readonly notify: (channel: string) => Promise<void>;
  /** Called at each change of the state, which is `lost` at first. */
  readonly onState?: (state: NotifierState) => void;
  /** Default 15,000, in milliseconds. */
  readonly heartbeatIntervalMs?: number;
}

export class PostgresNotifier implements Notifier {
  readonly #options: PostgresNotifierOptions;
  readonly #hosts: Hosts;
  readonly #schema: string;
  readonly #timeoutMs: number;
  readonly #self = randomUUID();
  readonly #heartbeatChannel = `beat_${this.#self.replaceAll("-", "")}`;
  readonly #listeners = new Set<(hint: Hint) => void>();
  readonly #pending = new HintBatch();
  readonly #closed = new AbortController();
  #client: pg.Client | undefined;
  #flush: NodeJS.Timeout | undefined;
  #flushing = false;
  #running: Promise<void> | undefined;
  #state: NotifierState = "lost";
  /** Told when the heartbeat that is under way comes back. */
  #onEcho: () => void = () => {};

  constructor(url: string, options: PostgresNotifierOptions) {
    const { schema = "tessera", timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS } = options;
    this.#options = options;
    this.#hosts = new Hosts(url);
    this.#schema = schema;
    this.#timeoutMs = timeoutMs;
  }

  get isUp(): boolean {
    return this.#state === "up";
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
      if (!signal.aborted) {
        this.#become("lost");
      }
      first = false;
      const pauseMs = LISTENER_RECONNECT_PAUSE_MS * (0.5 + Math.random() / 2);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Rejects when the connection is lost. */
  async #listen(first: boolean): Promise<void> {
    const { signal } = this.#closed;
    const url = this.#hosts.current;
    const [schema, timeoutMs] = [this.#schema, this.#timeoutMs];
    const client = new pg.Client(connectionConfig({ url, schema, connections: 1, timeoutMs }));
    const lost = once(client, "end").then(() => "lost" as const);
    // The connection may be lost during a query, which then reports it.
    lost.catch(() => undefined);
    client.on("error", () => client.connection.stream.destroy());
    client.on("notification", ({ channel, payload = "" }) => {
      if (channel === this.#heartbeatChannel) {
        this.#onEcho();
        return;
      }
      for (const hint of readHints(payload, this.#self)) {
        this.#tell(hint);
      }
    });
    try {
      await client.connect();
      // Refused by a standby.
      await client.query(`LISTEN ${schema}`);
      await client.query(`LISTEN ${this.#heartbeatChannel}`);
      const { session } = this.#options;
      if (session !== undefined) {
        await client.query(HOLD_SESSION, [session]);
      }
      this.#client = client;
      if (!first) {
        this.#tell(LOOK);
      }
      this.#schedule();
      const { heartbeatIntervalMs = LISTENER_HEARTBEAT_INTERVAL_MS } = this.#options;
      while (!signal.aborted) {
        const ended = await Promise.race([
          lost,
          this.#beat(client).then(() => sleep(heartbeatIntervalMs, "beat", { signal })),
        ]);
        if (ended === "lost") {
          return;
        }
      }
    } finally {
      if (this.#client === undefined) {
        this.#hosts.leave(url);
      }
      this.#client = undefined;
      client.connection.stream.destroy();
    }
  }

  /** Sends one heartbeat and waits for it. Rejects when the connection does not answer. */
  async #beat(client: pg.Client): Promise<void> {
    await client.query("SELECT 1");
    const echo = Promise.withResolvers<boolean>();
    this.#onEcho = () => echo.resolve(true);
    try {
      await this.#options.notify(this.#heartbeatChannel);
    } catch {
      // It was not sent, which says nothing about listening; the storage reports it.
      return;
    }
    const timer = setTimeout(() => echo.resolve(false), LISTENER_ECHO_TIMEOUT_MS).unref();
    const heard = await echo.promise;
    clearTimeout(timer);
    if (this.#client === client) {
      this.#become(heard ? "up" : "deaf");
    }
  }

  #become(state: NotifierState): void {
    if (state !== this.#state) {
      this.#state = state;
      this.#options.onState?.(state);
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
      await client.query("SELECT pg_notify($1, $2)", [this.#schema, text]);
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

// The codec of hints in a notification: JSON of at most 7,900 bytes, because
// Postgres takes less than 8,000. Hints that do not fit become one general
// hint.

/** Hints waiting to be sent, each once. */
class HintBatch {
  readonly #hints = new Map<string, Hint>();
  #look = false;

  get isEmpty(): boolean {
    return this.#hints.size === 0 && !this.#look;
  }

  add(hint: Hint): void {
    if (hint.kind === "look" || this.#hints.size >= MAX_HINTS_PER_BATCH) {
      this.#look = true;
      this.#hints.clear();
    } else if (hint.kind === "queued" && !this.#look) {
      const { kind, deploymentId, endpoint } = hint;
      const id = [kind, deploymentId, endpoint].join("/");
      const before = this.#hints.get(id);
      const keys = before?.kind === "queued" ? together(before.keys, hint.keys) : hint.keys;
      const isNamed = keys && Buffer.byteLength(JSON.stringify(keys)) <= MAX_KEY_BYTES;
      this.#hints.set(id, { kind, deploymentId, endpoint, ...(isNamed && { keys }) });
    } else if (!this.#look) {
      this.#hints.set(Object.values(hint).join("/"), hint);
    }
  }

  /** Returns the batch as text and empties it. `from` identifies the sender. */
  take(from: string): string {
    const hints = [...this.#hints.values()];
    this.#hints.clear();
    this.#look = this.#look || hints.length === 0;
    const text = JSON.stringify({ from, hints: this.#look ? [LOOK] : hints });
    this.#look = false;
    return Buffer.byteLength(text) <= MAX_NOTIFICATION_BYTES
      ? text
      : JSON.stringify({ from, hints: [LOOK] });
  }
}

/** The keys of two hints; undefined where one of them names none. */
function together(
  some: readonly string[] | undefined,
  others: readonly string[] | undefined,
): readonly string[] | undefined {
  return some && others && [...new Set([...some, ...others])];
}

const LOOK: Hint = { kind: "look" };

/**
 * Parses a notification; empty for this node's own, and one general hint when
 * it cannot be parsed.
 */
function readHints(text: string, self: string): Hint[] {
  try {
    const { from, hints } = JSON.parse(text) as { from: unknown; hints: unknown };
    if (from === self) {
      return [];
    }
    return Array.isArray(hints) && hints.every(isHint) ? hints : [LOOK];
  } catch {
    // Another program, or a newer version, sent it.
    return [LOOK];
  }
}

function isHint(value: unknown): value is Hint {
  const {
    kind,
    taskId,
    deploymentId,
    endpoint,
    keys = [],
  } = Object(value) as Record<string, unknown>;
  switch (kind) {
    case "queued":
      return (
        typeof deploymentId === "string" &&
        typeof endpoint === "string" &&
        Array.isArray(keys) &&
        keys.every((key) => typeof key === "string")
      );
    case "changed":
    case "abort":
      return typeof taskId === "string";
    default:
      return kind === "accounts" || kind === "look";
  }
}
