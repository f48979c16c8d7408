/** A server-streaming call through the invoker, which starts with its iteration and ends with its scope. */
import type { Message } from "@bufbuild/protobuf";
import type { StreamResponse } from "@connectrpc/connect";
import { untilAborted } from "./deadline.ts";
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
    try {
      this.#response = await scope.race(this.#start(scope));
      yield* untilAborted(this.#response.message, scope.signal);
    } catch (thrown) {
      throw scope.failure(thrown);
    }
  }
}
