/** The limit of a log's rate, which reports how many lines it dropped. */
import { perSecond as rateOf, TokenBucket } from "../collections/token-bucket.ts";
import { linesOf } from "../protocol/log-rate.ts";

/** Burst of a log: as many lines as its rate allows in this time. */
const LOG_BURST_SECONDS = 10;
/** How long dropped lines are counted before they are reported. */
const DROPPED_LINES_REPORT_DELAY_MS = 1_000;

/** Limits the rate of log lines, and reports how many it dropped. */
export class LogRateLimit implements Disposable {
  readonly #perSecond: number;
  readonly #onDropped: (message: string) => void;
  readonly #bucket: TokenBucket;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(perSecond: number, onDropped: (message: string) => void) {
    this.#perSecond = perSecond;
    this.#onDropped = onDropped;
    this.#bucket = new TokenBucket({ ...rateOf(perSecond), size: perSecond * LOG_BURST_SECONDS });
  }

  /** False when a line of this length exceeds the rate and is dropped. */
  admit(length: number): boolean {
    if (this.#bucket.take(linesOf(length))) {
      return true;
    }
    this.#dropped += 1;
    this.#timer ??= setTimeout(() => this.#report(), DROPPED_LINES_REPORT_DELAY_MS);
    return false;
  }

  /** Reports the last drops. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#report();
  }

  #report(): void {
    this.#timer = undefined;
    if (this.#dropped > 0) {
      this.#onDropped(
        `${this.#dropped} lines dropped: the limit is ${this.#perSecond} a second in the long run`,
      );
      this.#dropped = 0;
    }
  }
}
