/**
 * Results on their way to the node. Whatever ends within one turn of the event
 * loop leaves as one message, because a message costs far more than what is
 * in it.
 *
 * What their calls have counted goes before them.
 */
import { type CallResult, MAX_RESULTS_PER_MESSAGE } from "../protocol/messages.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./meters.ts";

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

  /** Sends what waits now; `sent` is called when it has been handed to the system. */
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
