/** Cooperative yielding: splits long work on the event loop into pieces. */
import { setImmediate } from "node:timers/promises";

/**
 * How long a piece of work may take before others get their turn: another request needs
 * several turns, and may have to wait for a piece in each.
 */
const YIELD_AFTER_MS = 4;

/** Units of work after which the clock is read; a unit is about a comparison. */
const MAX_UNITS_BETWEEN_LOOKS = 500;

export class Yielder {
  #units = 0;
  #begunMs = performance.now();

  /** Counts work; true when it is time to yield with `rest`. */
  spent(units: number): boolean {
    this.#units += units;
    if (this.#units < MAX_UNITS_BETWEEN_LOOKS) {
      return false;
    }
    this.#units = 0;
    return performance.now() - this.#begunMs >= YIELD_AFTER_MS;
  }

  async rest(): Promise<void> {
    await setImmediate();
    this.#begunMs = performance.now();
  }

  /** Restarts the clock after another wait, in which other work had its turn. */
  resume(): void {
    this.#begunMs = performance.now();
  }
}
