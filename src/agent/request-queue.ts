/** A queue of requests that a stream of a client takes as an iterable. */

export class RequestQueue<Message> implements AsyncIterable<Message> {
  readonly #messages: Message[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  /** The number of messages that the stream has not taken. */
  get size(): number {
    return this.#messages.length;
  }

  send(message: Message): void {
    if (!this.#ended) {
      this.#messages.push(message);
      this.#wake?.();
    }
  }

  /** Nothing more comes after what is there. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    for (;;) {
      for (let next = this.#messages.shift(); next !== undefined; next = this.#messages.shift()) {
        yield next;
      }
      if (this.#ended) {
        return;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
  }
}
