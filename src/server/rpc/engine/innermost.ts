/** The innermost link of the invoker's chains: calls the implementation itself. */

import type { DescService } from "@bufbuild/protobuf";
import {
  create,
  type DescMessage,
  type DescMethod,
  isMessage,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
} from "@connectrpc/connect";
import { type Problem, problem } from "../../../errors.ts";
import { RpcAnswer, RpcContext } from "./call-context.ts";
import type { Scope } from "./scope.ts";

/** The scope goes with a request, also where interceptors hand on a changed copy of it. */
export const scopeKey = Symbol("scope of the call");

type AnyRequest = UnaryRequest | StreamRequest;

/** The scope of a call in process; those through the library's handlers have none. */
export function scopeOf(req: AnyRequest): Scope | undefined {
  return (req as AnyRequest & { readonly [scopeKey]?: Scope })[scopeKey];
}

type Next = ReturnType<Interceptor>;
type Init = MessageInitShape<DescMessage>;
type Unary = (message: Message, context: HandlerContext) => Init | Promise<Init>;
type ServerStreaming = (message: Message, context: HandlerContext) => AsyncIterable<Init>;

/** The last `next` of the chain of interceptors for one method. */
export function createInnermost(
  method: DescMethod,
  implementation: Partial<ServiceImpl<DescService>>,
): Next {
  const own = implementation[method.localName];
  if (own === undefined) {
    return () => Promise.reject(notImplemented(method));
  }
  switch (method.methodKind) {
    case "unary": {
      const call = (own as Unary).bind(implementation);
      return (req) => {
        // The invoker has made one, and interceptors hand it on.
        const scope = scopeOf(req) as Scope;
        const context = new RpcContext(req, scope.deadlineMs);
        const failed = (thrown: unknown): never => {
          const found = scope.failure(thrown);
          scope.ended(found);
          throw found;
        };
        const answered = (output: Init) => {
          let message: Message;
          try {
            message = complete(method.output, output);
          } catch (thrown) {
            return failed(thrown);
          }
          scope.ended(undefined);
          return new RpcAnswer(message, context);
        };
        const output = call((req as UnaryRequest).message, context);
        const answer =
          output instanceof Promise
            ? output.then(answered, failed)
            : Promise.resolve(answered(output));
        scope.answer = answer;
        return answer;
      };
    }
    case "server_streaming": {
      const call = (own as ServerStreaming).bind(implementation);
      return async (req) => {
        const context = new RpcContext(req, scopeOf(req)?.deadlineMs);
        const input = await single((req as StreamRequest).message);
        return {
          stream: true,
          message: completeEach(method.output, call(input, context)),
          method,
          service: method.parent,
          header: context.responseHeader,
          trailer: context.responseTrailer,
        } as StreamResponse;
      };
    }
    default:
      return () => Promise.reject(notImplemented(method));
  }
}

/** The answer for a method that is known but not served here. */
export function notImplemented(method: DescMethod): Problem {
  return problem("ROUTE_NOT_FOUND", `${method.parent.typeName}.${method.name} is not served here`, {
    code: Code.Unimplemented,
  });
}

function complete(desc: DescMessage, init: Init): Message {
  return isMessage(init, desc) ? init : create(desc, init);
}

async function* completeEach(
  desc: DescMessage,
  inits: AsyncIterable<Init>,
): AsyncGenerator<Message, void, undefined> {
  for await (const init of inits) {
    yield complete(desc, init);
  }
}

async function single(messages: AsyncIterable<Message>): Promise<Message> {
  for await (const message of messages) {
    return message;
  }
  throw new ConnectError("the call carries no message", Code.InvalidArgument);
}
