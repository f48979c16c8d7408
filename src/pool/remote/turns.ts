/**
 * Turns of tunnels on one HTTP/2 connection. Node's HTTP/2 sends the frames of older streams first,
 * as long as these have any, so a few that are never without would keep the first bytes of all later
 * ones waiting. One frame at a time leaves gaps for everything else. What its reader does not take
 * in time goes without turns, and is sent when the reader lets it.
 */

/** How long a frame may be on its way in its turn. */
const TURN_MS = 20;

export class Turns {
  #isFree = true;
  /** Those who wait for their turn, in order. */
  readonly #waiting: (() => void)[] = [];

  /** Passes frames on, each in its turn. Who takes them asks for the next one when one was sent. */
  async *inTurn<Frame>(
    frames: Iterable<Frame> | AsyncIterable<Frame>,
  ): AsyncGenerator<Frame, void, undefined> {
    let isSlow = false;
    for await (const frame of frames) {
      const end = isSlow ? undefined : await this.#take();
      const beganMs = performance.now();
      yield frame;
      end?.();
      isSlow = performance.now() - beganMs >= TURN_MS;
    }
  }

  /** Resolves when it is free, with the function that ends the turn. */
  async #take(): Promise<() => void> {
    if (this.#isFree) {
      this.#isFree = false;
    } else {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      await promise;
    }
    let isHeld = true;
    const end = (): void => {
      clearTimeout(timer);
      if (isHeld) {
        isHeld = false;
        this.#next();
      }
    };
    const timer = setTimeout(end, TURN_MS);
    return end;
  }

  #next(): void {
    const next = this.#waiting.shift();
    this.#isFree = next === undefined;
    next?.();
  }
}
