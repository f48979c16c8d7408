/**
 * The most memory that a worker holds while each of its calls runs: by what its watch reads ten times
 * a second, and by readings as calls begin and end. What it held between two readings is missed,
 * unless it never held as much before, which the kernel remembers of a process. Calls that run
 * together have their memory together, which is of all of them.
 */
import type { Residence } from "./usage.ts";

/** Least time between two readings as calls begin, and between two as they end: many are short. */
const MIN_READING_INTERVAL_MS = 10;

/** What a worker holds, as its limit counts it; the most that was in RAM, and what is there now. */
export type Reading = Pick<Residence, "bytes" | "residentBytes" | "highestBytes">;

interface Call {
  /** The most that the worker had ever held in RAM as the call began. */
  readonly highestBytes: number;
  /** Undefined before the first reading since then. */
  peakBytes: number | undefined;
}

export class CallPeaks {
  readonly #read: () => Reading | undefined;
  readonly #now: () => number;
  readonly #calls = new Map<number, Call>();
  #last: Reading | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;
  #lastEndMs = Number.NEGATIVE_INFINITY;
  #isFinal = false;

  /** `read` reads what the worker holds now; undefined where that is not known. */
  constructor(read: () => Reading | undefined, now: () => number = () => performance.now()) {
    this.#read = read;
    this.#now = now;
  }

  began(id: number): void {
    if (this.#now() - this.#lastMs >= MIN_READING_INTERVAL_MS) {
      this.#take();
    }
    if (this.#last !== undefined) {
      this.#calls.set(id, { highestBytes: this.#last.highestBytes, peakBytes: undefined });
    }
  }

  /** The most that the worker held while this call ran, in bytes; undefined where that is not known. */
  ended(id: number): number | undefined {
    const call = this.#calls.get(id);
    if (call === undefined) {
      return undefined;
    }
    let isKnown = true;
    if (!this.#isFinal && this.#now() - this.#lastEndMs >= MIN_READING_INTERVAL_MS) {
      isKnown = this.#take();
      this.#lastEndMs = isKnown ? this.#lastMs : this.#lastEndMs;
    }
    this.#calls.delete(id);
    return isKnown ? call.peakBytes : undefined;
  }

  /** The worker is ended for what was read last: that was the most. */
  close(): void {
    this.#isFinal = true;
  }

  /** The worker holds this now. */
  seen(reading: Reading): void {
    this.#last = reading;
    this.#lastMs = this.#now();
    const { bytes, residentBytes, highestBytes } = reading;
    for (const call of this.#calls.values()) {
      const isHighest = highestBytes > call.highestBytes;
      const peakBytes = isHighest ? bytes - residentBytes + highestBytes : bytes;
      call.peakBytes = Math.max(call.peakBytes ?? 0, peakBytes);
    }
  }

  /** False where the worker is not there any more. */
  #take(): boolean {
    const reading = this.#read();
    if (reading !== undefined) {
      this.seen(reading);
    }
    return reading !== undefined;
  }
}
