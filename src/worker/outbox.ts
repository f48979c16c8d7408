/**
 * Batches results: those of one turn of the event loop are sent as one message,
 * because a message costs far more than its content, unless they are large. The metrics that their calls
 * recorded are sent before them.
 */
import {
  type CallResult,
  MAX_FAILURE_BYTES,
  MAX_RESULTS_PER_MESSAGE,
} from "../protocol/messages.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";

/** Results that are sent without waiting for others: with the last one a message is far larger. */
const LARGE_RESULTS_BYTES = 1024 * 1024;

/** Bytes of a character in JSON, escaped. */
const MAX_BYTES_PER_CHARACTER = 6;

export class Outbox {
  readonly #channel: Channel;
  readonly #meters: Meters;
  #results: CallResult[] = [];
  /** Their size, about. */
  #bytes = 0;

  constructor(channel: Channel, meters: Meters) {
    this.#channel = channel;
    this.#meters = meters;
  }

  add(result: CallResult): void {
    const count = this.#results.push(result);
    this.#bytes += sizeOf(result);
    if (count === 1) {
      setImmediate(() => this.flush());
    } else if (count === MAX_RESULTS_PER_MESSAGE || this.#bytes >= LARGE_RESULTS_BYTES) {
      this.flush();
    }
  }

  /** Sends all results now; `sent` is called when they were handed to the operating system. */
  flush(sent?: () => void): void {
    const results = this.#results;
    if (results.length > 0) {
      this.#results = [];
      this.#bytes = 0;
      this.#meters.flush();
      this.#channel.send({ type: "results", results }, sent);
    } else {
      this.#meters.flush(sent);
    }
  }
}

function sizeOf(one: CallResult): number {
  if ("failure" in one) {
    const { message, stack = "", violations } = one.failure;
    const escaped = MAX_BYTES_PER_CHARACTER * (message.length + stack.length);
    return violations ? MAX_FAILURE_BYTES : Math.min(escaped, MAX_FAILURE_BYTES);
  }
  if (typeof one.result === "string") {
    return one.result.length;
  }
  const [file] = one.result.files;
  return file && "data" in file ? file.data.byteLength : 0;
}
