/** A queue of messages for one reader, who takes them as an iterable. */

/** Messages that a worker has not read yet. An honest one has a few for each of its slots. */
const MAX_UNREAD_MESSAGES = 20_000;

export class SendQueue<Message> implements AsyncIterable<Message> {
  #messages: Message[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error: unknown } | undefined;

  send(message: Message): void {
    if (this.#end === undefined) {
      this.#messages.push(message);
      if (this.#messages.length > MAX_UNREAD_MESSAGES) {
        this.#messages = [];
        this.end(new Error("the reader does not read"));
      }
      this.#wake?.();
    }
  }

  /** Nothing more comes. The reader gets what is there, then the error, if there is one. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    for (;;) {
      yield* this.#messages.splice(0);
      if (this.#messages.length > 0) {
        continue;
      }
      if (this.#end !== undefined) {
        if (this.#end.error !== undefined) {
          throw this.#end.error;
        }
        return;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
  }
}
