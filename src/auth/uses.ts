import type { Log } from "../log/log.ts";
import type { Tokens } from "../storage/accounts/tokens.ts";

/** Uses are written together this long after the first of them. */
const WRITE_AFTER_MS = 5_000;

/** Tokens in one write. */
const BATCH = 1_000;

/** Tokens whose use waits to be written; of further ones the oldest is not written. */
const MAX_PENDING = 20_000;

export interface UseRecorderOptions {
  readonly accounts: Pick<Tokens, "recordUses">;
  readonly log: Log;
  readonly writeAfterMs?: number;
}

interface Use {
  readonly tokenId: string;
  readonly organizationId: string;
  timeMs: number;
  address: string;
}

/**
 * When and from where each token was used last. Noted in memory, written in
 * batches: a call never waits for it. What was not written when a node is
 * killed, or while the database is away for long, is lost.
 */
export class UseRecorder implements AsyncDisposable {
  readonly #accounts: Pick<Tokens, "recordUses">;
  readonly #log: Log;
  readonly #writeAfterMs: number;
  #pending = new Map<string, Use>();
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #ended = false;

  constructor({ accounts, log, writeAfterMs = WRITE_AFTER_MS }: UseRecorderOptions) {
    this.#accounts = accounts;
    this.#log = log;
    this.#writeAfterMs = writeAfterMs;
  }

  /** Notes a use. */
  note(
    { tokenId, organizationId }: { readonly tokenId: string; readonly organizationId: string },
    timeMs: number,
    address: string,
  ): void {
    const known = this.#pending.get(tokenId);
    if (known !== undefined) {
      known.timeMs = timeMs;
      known.address = address;
      return;
    }
    this.#pending.set(tokenId, { tokenId, organizationId, timeMs, address });
    if (this.#pending.size > MAX_PENDING) {
      const [oldest] = this.#pending.keys();
      this.#pending.delete(oldest ?? "");
    }
    this.#schedule();
  }

  /** Writes what was noted; never throws. */
  flush(): Promise<void> {
    this.#underWay = this.#underWay.then(() => this.#write());
    return this.#underWay;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.flush();
  }

  #schedule(): void {
    if (this.#timer === undefined && !this.#ended) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        void this.flush();
      }, this.#writeAfterMs);
    }
  }

  async #write(): Promise<void> {
    const uses = [...this.#pending.values()];
    this.#pending = new Map();
    try {
      while (uses.length > 0) {
        await this.#accounts.recordUses({ uses: uses.slice(0, BATCH) });
        uses.splice(0, BATCH);
      }
    } catch (err) {
      this.#log.warn({ err }, "the last uses of tokens could not be written yet");
      this.#takeBack(uses);
    }
  }

  /** Tries again later, with what was used since. */
  #takeBack(uses: readonly Use[]): void {
    for (const use of uses) {
      if (!this.#pending.has(use.tokenId) && this.#pending.size < MAX_PENDING) {
        this.#pending.set(use.tokenId, use);
      }
    }
    this.#schedule();
  }
}
