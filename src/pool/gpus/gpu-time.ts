/**
 * How long each call had the GPUs of its worker. Calls that run in a worker at a time share its
 * GPUs evenly, whatever each does with them, so what all of them had is never more than what the
 * worker had, and all of it while any call ran.
 *
 * It is a clock that goes the slower the more calls run: a call had what the clock shows at its end
 * less what it showed at its beginning.
 */
export class GpuTime {
  readonly #gpus: number;
  readonly #nowMs: () => number;
  #clockMs = 0;
  #readMs: number;
  #running = 0;

  /** @param gpus how many the worker has; below 1: that part of one */
  constructor(gpus: number, nowMs: () => number = () => performance.now()) {
    this.#gpus = gpus;
    this.#nowMs = nowMs;
    this.#readMs = nowMs();
  }

  /** A call begins. Call what it returns once, at its end: it answers the milliseconds. */
  begin(): () => number {
    const beganMs = this.#read();
    this.#running += 1;
    return () => {
      const hadMs = this.#read() - beganMs;
      this.#running -= 1;
      return hadMs;
    };
  }

  #read(): number {
    const nowMs = this.#nowMs();
    if (this.#running > 0) {
      this.#clockMs += ((nowMs - this.#readMs) * this.#gpus) / this.#running;
    }
    this.#readMs = nowMs;
    return this.#clockMs;
  }
}
