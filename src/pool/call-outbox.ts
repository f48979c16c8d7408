import type { Call } from "../protocol/messages.ts";

/** Calls of one turn of the event loop go to the worker together. */
export class CallOutbox {
  readonly #send: (calls: readonly Call[]) => void;
  #calls: Call[] = [];

  constructor(send: (calls: readonly Call[]) => void) {
    this.#send = send;
  }

  post(call: Call): void {
    if (this.#calls.push(call) === 1) {
      setImmediate(() => this.flush());
    }
  }

  /** Sends what has been posted, before anything else. */
  flush(): void {
    if (this.#calls.length > 0) {
      const calls = this.#calls;
      this.#calls = [];
      this.#send(calls);
    }
  }
}
