/** The write-behind recorder of token uses. */
import type { Log } from "../log/log.ts";
import type { Tokens } from "../storage/accounts/tokens.ts";

/**
 * Delay of the write-behind of token uses: uses are written together this long after the first
 * of them.
 */
const TOKEN_USES_WRITE_DELAY_MS = 5_000;

/** Token uses in one write. */
const MAX_TOKEN_USES_PER_WRITE = 1_000;

/** Tokens whose use waits to be written; beyond these the oldest use is dropped. */
const MAX_PENDING_TOKEN_USES = 20_000;

interface UseRecorderOptions {
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
 * Records when and from where each token was last used. Uses are buffered in
 * memory and written in batches, so a call never waits for it. Uses that are
 * not yet written are lost when the node is killed or the database is away for
 * long.
 */
export class UseRecorder implements AsyncDisposable {
  readonly #accounts: Pick<Tokens, "recordUses">;
  readonly #log: Log;
  readonly #writeAfterMs: number;
  #pending = new Map<string, Use>();
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #ended = false;

  constructor({ accounts, log, writeAfterMs = TOKEN_USES_WRITE_DELAY_MS }: UseRecorderOptions) {
    this.#accounts = accounts;
    this.#log = log;
    this.#writeAfterMs = writeAfterMs;
  }

  /** Records a use. */
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
    if (this.#pending.size > MAX_PENDING_TOKEN_USES) {
      const [oldest] = this.#pending.keys();
      this.#pending.delete(oldest ?? "");
    }
    this.#schedule();
  }

  /** Writes the buffered uses. Never rejects. */
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
        await this.#accounts.recordUses({ uses: uses.slice(0, MAX_TOKEN_USES_PER_WRITE) });
        uses.splice(0, MAX_TOKEN_USES_PER_WRITE);
      }
    } catch (err) {
      this.#log.warn({ err }, "the last uses of tokens could not be written yet");
      this.#takeBack(uses);
    }
  }

  /** Puts uses back after a failed write, without replacing newer ones. */
  #takeBack(uses: readonly Use[]): void {
    for (const use of uses) {
      if (!this.#pending.has(use.tokenId) && this.#pending.size < MAX_PENDING_TOKEN_USES) {
        this.#pending.set(use.tokenId, use);
      }
    }
    this.#schedule();
  }
}
