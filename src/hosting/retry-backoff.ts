/**
 * Why a revision could not be brought in here, and when it is tried again:
 * with growing pauses, since what failed may have been the service, the
 * storage or the machine.
 */

const FIRST_PAUSE_MS = 5_000;
const MAX_PAUSE_MS = 5 * 60_000;

export class RetryBackoff implements Disposable {
  readonly message: string;
  /** Whether the deployment itself tells of it. */
  readonly isTold: boolean;
  /** What could not be brought in; undefined once it is time to try it again. */
  #key: string | undefined;
  readonly #pauseMs: number;
  readonly #timer: NodeJS.Timeout;

  /** `retry` is called when the pause is over, which is longer than that of the fault before. */
  constructor(
    key: string,
    err: unknown,
    options: { readonly isTold: boolean; readonly before: RetryBackoff | undefined; retry(): void },
  ) {
    const { isTold, before, retry } = options;
    this.message = err instanceof Error ? err.message : String(err);
    this.isTold = isTold;
    this.#key = key;
    this.#pauseMs = before ? Math.min(before.#pauseMs * 2, MAX_PAUSE_MS) : FIRST_PAUSE_MS;
    this.#timer = setTimeout(() => {
      this.#key = undefined;
      retry();
    }, this.#pauseMs);
  }

  /** Whether it is too early to try this. */
  forbids(key: string): boolean {
    return this.#key === key;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
