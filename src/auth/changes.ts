/**
 * How a node learns that something it has remembered is no longer so.
 *
 * Whoever changes a token, a session, a person, an organization or a
 * deployment writes what changed in the same transaction. Every node reads
 * these changes in order and tells its listeners, which forget. Reading is
 * what makes it certain; a hint of another node only makes it sooner.
 *
 *   - While anyone asks whether the feed is fresh, it reads every 750 ms, so
 *     that a change is known everywhere within a second. When nobody has asked
 *     for half a minute, nothing that was remembered is of use any more, and
 *     it reads every 20 s.
 *   - It is fresh when a read that began less than 2 s ago has ended well.
 *     When it is not, nobody may rely on what they remember. Asking wakes it.
 *   - Who has changed something here calls `catchUp`, which returns when a
 *     read that began after the change has ended: this node has forgotten
 *     before it answers. `announceChanges` does so for every deed.
 */
import type { Log } from "../log/log.ts";
import type { Accounts, Change } from "../storage/accounts/accounts.ts";
import type { Notifier } from "../storage/notifier.ts";

const READ_EVERY_MS = 750;
const READ_EVERY_IDLE_MS = 20_000;
const IDLE_AFTER_MS = 30_000;
const FRESH_FOR_MS = 2_000;

/** Changes of one read; more of them follow at once. */
const LIMIT = 1_000;

/** What a listener forgets: all that concerns this id, or everything. */
export type Forgotten = Pick<Change, "kind" | "id"> | { readonly kind: "everything" };

export interface ChangeFeedOptions {
  readonly accounts: Pick<Accounts, "listChanges">;
  /** Undefined where no other node shares the database; another process may all the same. */
  readonly notifier: Notifier | undefined;
  readonly log: Log;
  /** Milliseconds that only move forward. */
  readonly monotonicMs?: () => number;
}

export class ChangeFeed implements AsyncDisposable {
  readonly #accounts: Pick<Accounts, "listChanges">;
  readonly #notifier: Notifier | undefined;
  readonly #log: Log;
  readonly #monotonicMs: () => number;
  readonly #listeners = new Set<(forgotten: readonly Forgotten[]) => void>();
  readonly #unsubscribe: () => void;
  /** The last change that was told; undefined before the first read. */
  #sequence: number | undefined;
  #freshFromMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #isAway = false;
  #reading: Promise<void> | undefined;
  /** The read after the one under way: for those who came too late for that. */
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

  /** Begins to read. Returns after the first read, which may have failed. */
  start(): Promise<void> {
    return this.#read();
  }

  /** Calls `listener` with what to forget. Answers what ends that. */
  listen(listener: (forgotten: readonly Forgotten[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether what is remembered can be relied on. Costs next to nothing. */
  isFresh(): boolean {
    const nowMs = this.#monotonicMs();
    this.#askedMs = nowMs;
    if (this.#timerIsIdle) {
      void this.#read();
    }
    return nowMs - this.#freshFromMs < FRESH_FOR_MS;
  }

  /**
   * Returns when a read that began after this call has ended, and tells the
   * other nodes to read. Never throws: after a read that failed, nothing is
   * fresh.
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

  /** A read that begins now, or after the one under way. */
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
        // There was more than one read takes.
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

  /** Reads once; true when there is nothing left. */
  async #readSome(): Promise<boolean> {
    const startedMs = this.#monotonicMs();
    const from = this.#sequence;
    const { changes, latest } = await this.#accounts.listChanges({
      afterSequence: from ?? Number.MAX_SAFE_INTEGER,
      limit: LIMIT,
    });
    const first = changes[0]?.sequence ?? latest + 1;
    // Sequences have no gaps. So this is the first read, or changes were pruned before they were
    // read, or the database is an older one, restored from a backup.
    const isTorn = from === undefined || first !== from + 1;
    this.#sequence = changes.at(-1)?.sequence ?? latest;
    this.#tell(isTorn ? [{ kind: "everything" }] : changes);
    if (changes.length < LIMIT) {
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
      this.#timerIsIdle = this.#monotonicMs() - this.#askedMs > IDLE_AFTER_MS;
      const afterMs = this.#timerIsIdle ? READ_EVERY_IDLE_MS : READ_EVERY_MS;
      this.#timer = setTimeout(() => void this.#read(), afterMs);
    }
  }
}

/** Calls of the port that change what nodes remember, but are no deed for the audit log. */
const ALSO_CHANGES = new Set<PropertyKey>(["confirmSession"]);

/**
 * The same port, but every deed returns only when this node has forgotten
 * what it changed, and the others have been told.
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
