/**
 * The lifetime of one call in process: its abort signal, its deadline and the
 * listener for its end; and the innermost link of the invoker's chain, which
 * calls the implementation.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
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
import { MAX_TIMER_MS } from "../../../time/alarm.ts";
import { raceAbort } from "../../../time/race.ts";
import { RpcAnswer, RpcContext } from "./call-context.ts";
import { failureOf, timedOut } from "./deadline.ts";

/** The key of the scope in a request; interceptors keep it when they pass on a changed copy. */
export const scopeKey = Symbol("scope of the call");

type AnyRequest = UnaryRequest | StreamRequest;

/** The scope of a call in process; undefined for calls through the library's handlers. */
export function scopeOf(req: AnyRequest): Scope | undefined {
  return (req as AnyRequest & { readonly [scopeKey]?: Scope })[scopeKey];
}

type Next = ReturnType<Interceptor>;
type Init = MessageInitShape<DescMessage>;
type Unary = (message: Message, context: HandlerContext) => Init | Promise<Init>;
type ServerStreaming = (message: Message, context: HandlerContext) => AsyncIterable<Init>;

/** Creates the last `next` of a method's chain of interceptors. */
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
        // The invoker has created it, and interceptors pass it on.
        const scope = scopeOf(req) as Scope;
        const context = new RpcContext(req, scope.deadlineMs);
        const failed = (thrown: unknown): never => {
          const found = context.withMetadata(scope.failure(thrown));
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

/** The error for a method that is known but not served here. */
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

/** Listens for the end of a call. */
export interface EndListener {
  /** Called with the error of a call that failed. */
  ended(found: Problem | undefined): void;
}

/** The scope of one call. */
export class Scope implements Disposable, EndListener {
  /** Aborts when the caller has gone or the deadline has passed. */
  readonly signal: AbortSignal;
  /** In milliseconds since 1970; undefined: no deadline. */
  readonly deadlineMs: number | undefined;
  /** Set by an interceptor; called once, at the end of the call. */
  listener: EndListener | undefined;
  /** The answer of the implementation; the caller sees the error that it rejects with. */
  answer: Promise<unknown> | undefined;
  readonly #release: (() => void) | undefined;

  constructor(caller: AbortSignal | undefined, timeoutMs: number | undefined) {
    if (timeoutMs === undefined) {
      this.signal = caller ?? new AbortController().signal;
      return;
    }
    const controller = new AbortController();
    const limitMs = Math.max(0, Math.min(timeoutMs, MAX_TIMER_MS));
    this.deadlineMs = Date.now() + limitMs;
    const timer = setTimeout(() => {
      const found = timedOut(limitMs);
      controller.abort(found);
      // The caller is answered now, whatever the implementation does.
      this.ended(found);
    }, limitMs);
    this.signal = controller.signal;
    // Not `AbortSignal.any`: with a listener it would live as long as the caller's connection.
    const follow = () => controller.abort(caller?.reason);
    if (caller?.aborted) {
      follow();
    } else {
      caller?.addEventListener("abort", follow);
    }
    this.#release = () => {
      clearTimeout(timer);
      caller?.removeEventListener("abort", follow);
    };
  }

  /** The promise, or a rejection as soon as the signal aborts. */
  race<T>(promise: Promise<T>): Promise<T> {
    return raceAbort(promise, this.signal);
  }

  /** The caller's error for anything thrown in the call. */
  failure(thrown: unknown): Problem {
    return failureOf(thrown, this.signal);
  }

  /** Notifies the listener of the end of the call; only the first call has an effect. */
  ended(found: Problem | undefined): void {
    const { listener } = this;
    this.listener = undefined;
    listener?.ended(found);
  }

  [Symbol.dispose](): void {
    this.#release?.();
  }
}
