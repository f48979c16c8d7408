/**
 * A periodic timer with jitter. It pauses for `everyMs`, give or take a tenth
 * so that nodes do not run in step, between the end of one round and the
 * beginning of the next. A round that throws is reported, and the next one
 * follows all the same.
 */
export class Timer implements AsyncDisposable {
  readonly #everyMs: () => number;
  readonly #round: () => Promise<unknown>;
  readonly #onError: (err: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(
    everyMs: number | (() => number),
    round: () => Promise<unknown>,
    onError: (err: unknown) => void,
  ) {
    this.#everyMs = typeof everyMs === "number" ? () => everyMs : everyMs;
    this.#round = round;
    this.#onError = onError;
    this.#schedule();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#underWay;
  }

  /** Pause before the next round, in milliseconds, with its jitter. */
  pauseMs(): number {
    return this.#everyMs() * (0.9 + Math.random() * 0.2);
  }

  #schedule(): void {
    if (!this.#ended) {
      this.#timer = setTimeout(() => {
        this.#underWay = this.#run();
      }, this.pauseMs());
    }
  }

  async #run(): Promise<void> {
    try {
      await this.#round();
    } catch (err) {
      this.#onError(err);
    }
    this.#schedule();
  }
}
