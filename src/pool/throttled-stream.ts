import type { Readable } from "node:stream";
import { perSecond, TokenBucket } from "../collections/token-bucket.ts";

/**
 * Back-pressure on a stream by a token bucket: when more was spent than the rate
 * allows, the stream is paused until the bucket has filled, so that its writer
 * waits too.
 */
export class ThrottledStream implements Disposable {
  readonly #stream: Readable;
  readonly #bucket: TokenBucket;
  #timer: NodeJS.Timeout | undefined;

  /** `rate` is how much a second is allowed, in the unit of `spend`. */
  constructor(stream: Readable, rate: number) {
    this.#stream = stream;
    this.#bucket = new TokenBucket(perSecond(rate));
  }

  spend(amount: number): void {
    const waitMs = this.#bucket.spend(amount);
    if (waitMs > 0 && this.#timer === undefined) {
      this.#stream.pause();
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#stream.resume();
      }, waitMs);
    }
  }

  /** Ends the throttling and resumes the stream. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stream.resume();
  }
}
