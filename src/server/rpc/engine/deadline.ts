/**
 * Deadlines of calls through the library's handlers: gRPC, gRPC-Web, binary Connect and Connect
 * streams. The library aborts the call's signal at the deadline and then waits for the
 * implementation; here the caller is answered at the deadline whatever the implementation does.
 * Calls in process have the same from their `Scope`.
 */
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { type Problem, problem, toProblem } from "../../../errors.ts";
import { MAX_TIMER_MS } from "../../../time/alarm.ts";
import { raceAbort } from "../../../time/race.ts";

/**
 * Passes items on until the signal aborts, and then throws its reason: also when the source ends
 * by itself because of the abort, which would look like the end of a complete stream.
 */
export async function* untilAborted<T>(
  items: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  let source: AsyncIterator<T> | undefined = items[Symbol.asyncIterator]();
  // Not awaited: a source that ignores the signal must not hold up the caller.
  const leave = () => void source?.return?.().catch(() => undefined);
  // The listener covers a caller that reads no further item.
  signal.addEventListener("abort", leave);
  try {
    while (true) {
      const { done, value } = await raceAbort(source.next(), signal);
      signal.throwIfAborted();
      if (done === true) {
        source = undefined;
        return;
      }
      try {
        yield value;
      } catch (cause) {
        // Only who reads throws here: the library, when it cannot write to a caller who has gone.
        throw callerGone(cause);
      }
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** The caller's error for anything thrown in a call with this signal. */
export function failureOf(thrown: unknown, signal: AbortSignal): Problem {
  if (!signal.aborted || !isAbort(thrown, signal)) {
    return toProblem(thrown);
  }
  const reason: unknown = signal.reason;
  return toProblem(
    // INTERNAL is how the library has a stream that the caller reset, or a connection that broke.
    reason instanceof ConnectError && reason.code !== Code.Internal ? reason : callerGone(reason),
  );
}

function callerGone(cause: unknown): ConnectError {
  return new ConnectError("the caller is gone", Code.Canceled, undefined, undefined, cause);
}

/** The error of a call whose caller allows so long. */
export function timedOut(limitMs: number): Problem {
  return problem("CALL_TIMEOUT", `the call did not end within the ${limitMs} ms its caller allows`);
}

/** True for errors that `signal.throwIfAborted` and Node's own functions throw on an abort. */
function isAbort(thrown: unknown, signal: AbortSignal): boolean {
  return thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError");
}

/** The interceptor that answers at the deadline, for calls through the library. */
export function createDeadlineInterceptor(): Interceptor {
  return (next) => async (req) => {
    const { signal } = req;
    try {
      const res = await raceAbort(next(req), signal);
      return res.stream ? { ...res, message: failing(res.message, signal) } : res;
    } catch (thrown) {
      throw failureOf(thrown, signal);
    }
  };
}

async function* failing<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  try {
    yield* untilAborted(items, signal);
  } catch (thrown) {
    throw failureOf(thrown, signal);
  }
}

/** Milliseconds of each unit of `grpc-timeout`. */
const GRPC_UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** The time that `grpc-timeout` allows, at most as long as a timer runs; undefined for other text. */
export function grpcTimeoutOf(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return amount === undefined
    ? undefined
    : Math.min(Number(amount) * (GRPC_UNITS_MS[unit] ?? 0), MAX_TIMER_MS);
}

/**
 * Reads the time that the caller allows, at most as long as a timer runs, and puts a longer one
 * down to that in the headers: the library would end such a call at once. Undefined: there is
 * none, or one that the library refuses.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md (Timeout),
 * https://connectrpc.com/docs/protocol#unary-request (Timeout)
 */
export function clampTimeout(header: Headers): number | undefined {
  const timeoutMs = grpcTimeoutOf(header.get("grpc-timeout") ?? "");
  if (timeoutMs !== undefined) {
    if (timeoutMs === MAX_TIMER_MS) {
      header.set("grpc-timeout", `${Math.floor(MAX_TIMER_MS / 1_000)}S`);
    }
    return timeoutMs;
  }
  const connect = header.get("connect-timeout-ms") ?? "";
  if (!/^\d{1,10}$/.test(connect)) {
    return undefined;
  }
  const connectMs = Math.min(Number(connect), MAX_TIMER_MS);
  header.set("connect-timeout-ms", String(connectMs));
  return connectMs;
}
