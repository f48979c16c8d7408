/**
 * Functions that speak with each caller through a WebSocket. Each is a mounted server of its own, at
 * the path of its key in `mounts`, or of its method.
 */
import type { RateText } from "../protocol/duration.ts";
import type { CallRequest } from "./context.ts";
import { ServiceDefinitionError } from "./errors.ts";
import { bytesOf, type Size } from "./options.ts";
import { ENDPOINT, SOCKET } from "./symbols.ts";
import { refuseUnknown } from "./unknown.ts";

/** A message of a caller: a text or bytes, as it was sent. */
export type SocketMessage = string | Uint8Array;

/**
 * The WebSocket of one caller: `for await (const message of socket)` reads it until they leave.
 * `await socket.next()` reads one message.
 */
export interface Socket extends AsyncIterableIterator<SocketMessage, undefined> {
  /** True once it was closed, or a read or `send` has found that the caller has left. */
  readonly closed: boolean;
  /**
   * Sends a text or bytes, and waits while the caller reads more slowly than that. Rejects once
   * the WebSocket is closed, which needs no handling.
   */
  send(message: string | ArrayBuffer | Uint8Array): Promise<void>;
  /**
   * Closes it, by default with the code 1000. Throws a `RangeError` for a code other than 1000,
   * 1001, 1003, 1007 to 1014, and 3000 to 4999, and for a reason of more than 123 bytes.
   */
  close(code?: number, reason?: string): void;
}

/** The parameter of a function with a WebSocket. */
export interface SocketContext {
  /** The request that opened the WebSocket, with all its headers that servers are shown. */
  readonly request: CallRequest;
  readonly socket: Socket;
  /** Aborts when the WebSocket has ended. */
  readonly signal: AbortSignal;
}

export type SocketFunction = (ctx: SocketContext) => void | Promise<void>;

export interface SocketOptions {
  /** WebSockets that one worker has at a time, at most 10,000. Default: 100. */
  readonly concurrency?: number;
  /**
   * The WebSockets of one key (the header `Tessera-Key`, or the caller's token) on a node, from 1 to
   * 10,000; more are refused. Default: any number.
   */
  readonly concurrencyPerKey?: number;
  /**
   * The WebSockets of one key that are opened on a node, such as `"10/min"`, with as many at once; more
   * are refused. A number from 1 to 10,000, and `s`, `min`, `h` or `d`. Default: any number.
   */
  readonly ratePerKey?: RateText;
  /**
   * What a message of a caller may have, in bytes or as `"4MiB"`, at most 16 MiB; a longer one
   * closes the WebSocket with 1009. Default: 1 MiB.
   */
  readonly maxMessage?: Size;
}

export interface SocketMethodOptions extends SocketOptions {
  /** Its path, such as `/v1/live`. Default: the name of the method, `/live`. */
  readonly route?: string;
}

/** What a function with a WebSocket is made of; `service` and the worker read it. */
interface SocketDefinition {
  readonly options: SocketMethodOptions;
  /** Undefined for a method, which is called on the service's instance. */
  readonly run?: SocketFunction;
}

/** A function with a WebSocket: a value for `service({ mounts })`. */
export interface SocketMount {
  readonly [SOCKET]: SocketDefinition;
}

/** A function with a WebSocket as a worker serves it. */
export interface ServedSocket {
  readonly maxMessageBytes: number;
  /** Undefined for a method, until its service is constructed. */
  readonly run?: SocketFunction;
  /** The method that it is in a service class. */
  readonly method?: string;
}

/** A standard (TC39) decorator for methods that speak through a WebSocket. */
export type SocketDecorator = <This>(
  method: (this: This, ctx: SocketContext) => void | Promise<void>,
  context: ClassMethodDecoratorContext<This>,
) => void;

/** What a message of a WebSocket may have, unless the author of its function says otherwise. */
const DEFAULT_MESSAGE_BYTES = 1024 ** 2;
/** The largest message that an author may allow. */
const MAX_MESSAGE_BYTES = 16 * 1024 ** 2;

const FUNCTION_OPTIONS: Readonly<Record<keyof SocketOptions, true>> = {
  concurrency: true,
  concurrencyPerKey: true,
  ratePerKey: true,
  maxMessage: true,
};
const METHOD_OPTIONS: Readonly<Record<keyof SocketMethodOptions, true>> = {
  ...FUNCTION_OPTIONS,
  route: true,
};

/**
 * Defines a function that speaks with each caller through a WebSocket, for `mounts`:
 *
 *     service({ name: "echo", endpoints: {}, mounts: {
 *       "/live": socket(async (ctx) => {
 *         for await (const message of ctx.socket) await ctx.socket.send(message);
 *       }),
 *     } });
 *
 * The loop ends when the caller has left. The end of the function closes the WebSocket with the
 * code 1000, an error with 1011, and the end of the worker with 1012. Without a function it is
 * the decorator of a method: `@socket()`. Throws a `ServiceDefinitionError` for wrong parameters.
 */
export function socket(run: SocketFunction): SocketMount;
export function socket(options: SocketOptions, run: SocketFunction): SocketMount;
export function socket(options?: SocketMethodOptions): SocketDecorator;
export function socket(
  first: SocketFunction | SocketMethodOptions = {},
  second?: SocketFunction,
): unknown {
  const [options, run] = typeof first === "function" ? [{}, first] : [first, second];
  if (typeof options !== "object" || options === null) {
    throw new ServiceDefinitionError(
      "socket()",
      "the first parameter must be options or a function",
    );
  }
  if (typeof first === "function" && second !== undefined) {
    throw new ServiceDefinitionError(
      "socket()",
      "as a decorator it is @socket(), with parentheses",
    );
  }
  if (run !== undefined && typeof run !== "function") {
    throw new ServiceDefinitionError("socket()", "the second parameter must be a function");
  }
  return run === undefined ? decorator({ options }) : { [SOCKET]: { options, run } };
}

function decorator(definition: SocketDefinition) {
  return (method: unknown, context: ClassMethodDecoratorContext): void => {
    const at = `@socket ${String(context?.name)}`;
    if (
      context?.kind !== "method" ||
      typeof method !== "function" ||
      context.static ||
      context.private ||
      typeof context.name === "symbol"
    ) {
      throw new ServiceDefinitionError(
        at,
        "can only be put on a public method of the instance, with standard decorators",
      );
    }
    if (Object.hasOwn(method, ENDPOINT)) {
      throw new ServiceDefinitionError(at, "is an endpoint already: a method is one or the other");
    }
    Object.defineProperty(method, SOCKET, { value: definition });
  };
}

/** The definition on what `socket` has returned, or on a method; undefined for all else. */
export function socketOn(value: unknown): SocketDefinition | undefined {
  const mayBe = (typeof value === "object" || typeof value === "function") && value !== null;
  return mayBe ? (value as Partial<SocketMount>)[SOCKET] : undefined;
}

/** Checks what `socket` was given, but for its path and concurrency. */
export function checkSocket(
  { options, run }: SocketDefinition,
  place: string,
  method?: string,
): ServedSocket {
  if (method === undefined && options.route !== undefined) {
    throw new ServiceDefinitionError(place, "its key in mounts is its path; remove route");
  }
  refuseUnknown(options, method === undefined ? FUNCTION_OPTIONS : METHOD_OPTIONS, place);
  const { maxMessage: size = DEFAULT_MESSAGE_BYTES } = options;
  const maxMessageBytes = bytesOf(size, { place, name: "maxMessage", max: MAX_MESSAGE_BYTES });
  return { maxMessageBytes, ...(run && { run }), ...(method !== undefined && { method }) };
}
