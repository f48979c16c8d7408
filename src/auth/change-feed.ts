/**
 * The change feed: invalidates this node's caches of credentials and
 * deployments.
 *
 * A change to a token, a session, a person, an organization or a deployment
 * writes a change event in the same transaction. Every node reads these events
 * in order and passes them to its listeners, which drop the stale entries.
 * Polling makes invalidation certain; a hint of another node only makes it
 * sooner.
 *
 * - While callers ask whether the feed is fresh, it reads every 750 ms, so that
 *   a change is known on every node within a second. After half a minute
 *   without a call no cached entry is of use any more, and it reads every 20 s.
 * - The feed is fresh when a read that began less than 2 s ago succeeded. While
 *   it is not, caches must not be used. Asking wakes it.
 * - After a change on this node, `catchUp` returns when a read that began after
 *   the change has ended: this node has dropped its entries before it responds.
 *   `announceChanges` does so for every deed.
 */
import type { Log } from "../log/log.ts";
import type { Accounts, Change } from "../storage/accounts/accounts.ts";
import type { Notifier } from "../storage/notifier.ts";

/**
 * Interval at which a node reads changes of credentials while callers ask whether the feed is
 * fresh, so that a change is known everywhere within a second.
 */
const CHANGES_READ_INTERVAL_MS = 750;
/** Interval at which an idle node reads changes of credentials. */
const CHANGES_IDLE_READ_INTERVAL_MS = 20_000;
/**
 * Time without a question after which the feed of changes is idle: nothing that was remembered
 * is of use any more.
 */
const CHANGES_IDLE_AFTER_MS = 30_000;
/**
 * Age at which a successful read of changes no longer counts as fresh, so that caches may not
 * be used.
 */
const CHANGES_FRESH_MS = 2_000;

/** Changes of credentials in one read; further ones are read at once. */
const MAX_CHANGES_PER_READ = 1_000;

/** What a listener drops: all entries about this id, or everything. */
export type Forgotten = Pick<Change, "kind" | "id"> | { readonly kind: "everything" };

interface ChangeFeedOptions {
  readonly accounts: Pick<Accounts, "listChanges">;
  /** Undefined when no other node shares the database; another process still may. */
  readonly notifier: Notifier | undefined;
  readonly log: Log;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

export class ChangeFeed implements AsyncDisposable {
  readonly #accounts: Pick<Accounts, "listChanges">;
  readonly #notifier: Notifier | undefined;
  readonly #log: Log;
  readonly #monotonicMs: () => number;
  readonly #listeners = new Set<(forgotten: readonly Forgotten[]) => void>();
  readonly #unsubscribe: () => void;
  /** The last change that was passed on; undefined before the first read. */
  #sequence: number | undefined;
  #freshFromMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #isAway = false;
  #reading: Promise<void> | undefined;
  /** The read after the current one, for callers that came too late for that. */
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerIsIdle = false;
  #ended = false;

  constructor({ accounts, notifier, log, monotonicMs }: ChangeFeedOptions) {
    this.#accounts = accounts;
    this.#notifier = notifier;
    this.#log = log;
    this.#monotonicMs = monotonicMs ?? (() => performance.now());
    this.#unsubscribe =
      notifier?.subscribe(({ kind }) => {
        if (kind === "accounts" || kind === "look") {
          void this.#read();
        }
      }) ?? (() => {});
  }

  /** Starts reading. Resolves after the first read, which may have failed. */
  start(): Promise<void> {
    return this.#read();
  }

  /** Calls `listener` with what to drop. Returns the unsubscribe function. */
  listen(listener: (forgotten: readonly Forgotten[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether caches can be relied on. Cheap enough for every call. */
  isFresh(): boolean {
    const nowMs = this.#monotonicMs();
    this.#askedMs = nowMs;
    if (this.#timerIsIdle) {
      void this.#read();
    }
    return nowMs - this.#freshFromMs < CHANGES_FRESH_MS;
  }

  /**
   * Resolves when a read that began after this call has ended, and hints the
   * other nodes to read. Never rejects: after a failed read, nothing is fresh.
   */
  catchUp(): Promise<void> {
    this.#notifier?.publish({ kind: "accounts" });
    return this.#read();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    await this.#next;
    await this.#reading;
  }

  /** A read that begins now, or after the current one. */
  #read(): Promise<void> {
    if (this.#ended) {
      return Promise.resolve();
    }
    if (this.#reading === undefined) {
      this.#reading = this.#readAll();
      return this.#reading;
    }
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      return this.#read();
    });
    return this.#next;
  }

  async #readAll(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timerIsIdle = false;
    try {
      while (!(await this.#readSome())) {
        // The page was full.
      }
      if (this.#isAway) {
        this.#log.info({}, "changes of accounts can be read again");
      }
      this.#isAway = false;
    } catch (err) {
      this.#freshFromMs = Number.NEGATIVE_INFINITY;
      if (!this.#isAway) {
        this.#log.warn({ err }, "changes of accounts cannot be read: nothing is remembered");
      }
      this.#isAway = true;
    }
    this.#reading = undefined;
    this.#schedule();
  }

  /** Reads one page; true when no change is left. */
  async #readSome(): Promise<boolean> {
    const startedMs = this.#monotonicMs();
    const from = this.#sequence;
    const { changes, latest } = await this.#accounts.listChanges({
      afterSequence: from ?? Number.MAX_SAFE_INTEGER,
      limit: MAX_CHANGES_PER_READ,
    });
    const first = changes[0]?.sequence ?? latest + 1;
    // Sequences have no gaps. So this is the first read, or changes were pruned before they were
    // read, or the database is an older one, restored from a backup.
    const isTorn = from === undefined || first !== from + 1;
    this.#sequence = changes.at(-1)?.sequence ?? latest;
    this.#tell(isTorn ? [{ kind: "everything" }] : changes);
    if (changes.length < MAX_CHANGES_PER_READ) {
      this.#freshFromMs = startedMs;
      return true;
    }
    return false;
  }

  #tell(forgotten: readonly Forgotten[]): void {
    if (forgotten.length > 0) {
      for (const listener of this.#listeners) {
        listener(forgotten);
      }
    }
  }

  #schedule(): void {
    if (!this.#ended) {
      this.#timerIsIdle = this.#monotonicMs() - this.#askedMs > CHANGES_IDLE_AFTER_MS;
      const afterMs = this.#timerIsIdle ? CHANGES_IDLE_READ_INTERVAL_MS : CHANGES_READ_INTERVAL_MS;
      this.#timer = setTimeout(() => void this.#read(), afterMs);
    }
  }
}

/** Methods of the port that change cached data but are not deeds for the audit log. */
const ALSO_CHANGES = new Set<PropertyKey>(["confirmSession"]);

/**
 * Wraps a port so that every deed resolves only after this node has dropped the
 * stale entries and hinted the other nodes.
 */
export function announceChanges<Port extends object>(port: Port, changes: ChangeFeed): Port {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") {
        return member;
      }
      return async (...parameters: readonly unknown[]): Promise<unknown> => {
        const result: unknown = await Reflect.apply(member, target, parameters);
        if (ALSO_CHANGES.has(name) || Object.hasOwn(Object(parameters[0]), "eventId")) {
          await changes.catchUp();
        }
        return result;
      };
    },
  });
}
