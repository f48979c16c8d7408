/** The port through which REST and the data plane execute calls. */
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";

/** The HTTP request behind a call. */
export interface CallOrigin {
  readonly header: IncomingHttpHeaders;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly requestMethod: string;
  readonly url: string;
  readonly contextValues?: ContextValues;
}

export interface UnaryAnswer {
  readonly message: Message;
  readonly header: Headers;
}

export interface StreamAnswer extends AsyncIterable<Message> {
  /** Complete once the first message has arrived. */
  readonly header: Headers;
}

/** Executes calls. Every error is a `Problem`. */
export interface Invoke {
  unary(method: DescMethodUnary, message: Message, origin: CallOrigin): Promise<UnaryAnswer>;
  stream(method: DescMethodServerStreaming, message: Message, origin: CallOrigin): StreamAnswer;
}
