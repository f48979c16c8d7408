/**
 * Batches results: those of one turn of the event loop are sent as one message,
 * because a message costs far more than its content. The metrics that their calls
 * recorded are sent before them.
 */
import { type CallResult, MAX_RESULTS_PER_MESSAGE } from "../protocol/messages.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";

export class Outbox {
  readonly #channel: Channel;
  readonly #meters: Meters;
  #results: CallResult[] = [];

  constructor(channel: Channel, meters: Meters) {
    this.#channel = channel;
    this.#meters = meters;
  }

  add(result: CallResult): void {
    const count = this.#results.push(result);
    if (count === 1) {
      setImmediate(() => this.flush());
    } else if (count === MAX_RESULTS_PER_MESSAGE) {
      this.flush();
    }
  }

  /** Sends all results now; `sent` is called when they were handed to the operating system. */
  flush(sent?: () => void): void {
    const results = this.#results;
    if (results.length > 0) {
      this.#results = [];
      this.#meters.flush();
      this.#channel.send({ type: "results", results }, sent);
    } else {
      this.#meters.flush(sent);
    }
  }
}
