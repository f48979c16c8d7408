/** Collects the calls of a batch, whose files may be moved to the worker one after the other. */
import type { Call } from "../../protocol/messages.ts";

export class BatchPost {
  #missing: number;
  #calls: Call[] = [];

  constructor(size: number) {
    this.#missing = size;
  }

  /** A call is ready. Returns all calls when it was the last one that was missing. */
  add(call: Call): readonly Call[] {
    this.#calls.push(call);
    return this.#oneLess();
  }

  /** A call has ended before the batch was sent. Returns as `add`. */
  withdraw(callId: number): readonly Call[] {
    const ready = this.#calls.length;
    this.#calls = this.#calls.filter(({ id }) => id !== callId);
    return this.#calls.length < ready ? [] : this.#oneLess();
  }

  #oneLess(): readonly Call[] {
    this.#missing -= 1;
    return this.#missing === 0 ? this.#calls : [];
  }
}
