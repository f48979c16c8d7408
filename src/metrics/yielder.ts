/** Long work on the event loop, in pieces: others get their turn between them. */
import { setImmediate } from "node:timers/promises";

/** How long a piece may take: another request needs several turns, and may have to wait for a piece in each. */
const PIECE_MS = 4;

/** Units of work after which the clock is looked at; a unit is about a comparison. */
const UNITS_BETWEEN_LOOKS = 500;

export class Yielder {
  #units = 0;
  #begunMs = performance.now();

  /** Counts work done; true when it is time to let others go on, with `rest`. */
  spent(units: number): boolean {
    this.#units += units;
    if (this.#units < UNITS_BETWEEN_LOOKS) {
      return false;
    }
    this.#units = 0;
    return performance.now() - this.#begunMs >= PIECE_MS;
  }

  async rest(): Promise<void> {
    await setImmediate();
    this.#begunMs = performance.now();
  }

  /** Called after waiting for something else: others have had their turn. */
  resume(): void {
    this.#begunMs = performance.now();
  }
}
