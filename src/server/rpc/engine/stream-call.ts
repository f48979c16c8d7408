/** A server-streaming call through the invoker, which starts with its iteration and ends with its scope. */
import type { Message } from "@bufbuild/protobuf";
import type { StreamResponse } from "@connectrpc/connect";
import type { Scope } from "./scope.ts";

/** The call and its answers. */
export class StreamCall implements AsyncIterable<Message> {
  readonly #open: () => Scope;
  readonly #start: (scope: Scope) => Promise<StreamResponse>;
  #response: StreamResponse | undefined;
  readonly #none = new Headers();

  constructor(open: () => Scope, start: (scope: Scope) => Promise<StreamResponse>) {
    this.#open = open;
    this.#start = start;
  }

  get header(): Headers {
    return this.#response?.header ?? this.#none;
  }

  get trailer(): Headers {
    return this.#response?.trailer ?? this.#none;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    using scope = this.#open();
    let messages: AsyncIterator<Message> | undefined;
    // Not awaited: an implementation that ignores its signal must not hold up the caller.
    const leave = () => void messages?.return?.().catch(() => undefined);
    // The listener covers a caller that reads no further message.
    scope.signal.addEventListener("abort", leave);
    try {
      this.#response = await scope.race(this.#start(scope));
      messages = this.#response.message[Symbol.asyncIterator]();
      while (true) {
        const { done, value } = await scope.race(messages.next());
        if (done === true) {
          messages = undefined;
          return;
        }
        yield value;
      }
    } catch (thrown) {
      throw scope.failure(thrown);
    } finally {
      scope.signal.removeEventListener("abort", leave);
      leave();
    }
  }
}
