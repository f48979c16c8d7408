/**
 * One call in process: how long it may live, which is until its caller is
 * gone or its time is up, and who is told how it ended.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { type Problem, problem, toProblem } from "../../../errors.ts";

/** Node's timers count in 31 bits; more than this (24.8 days) is no limit at all. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Told of the end of a call, and with what it failed. */
export interface EndListener {
  ended(found: Problem | undefined): void;
}

export class Scope implements Disposable, EndListener {
  /** Aborts when the caller is gone or the time is up. */
  readonly signal: AbortSignal;
  /** When the time is up, in milliseconds since 1970; undefined: no limit. */
  readonly deadlineMs: number | undefined;
  /** Set by an interceptor: told of the end of the call, once. */
  listener: EndListener | undefined;
  /** The answer of the implementation; what it rejects with is what the caller sees. */
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
    const timer = setTimeout(() => controller.abort(timedOut(limitMs)), limitMs);
    this.signal = controller.signal;
    // Not `AbortSignal.any`, which a listener keeps for as long as the caller's connection lasts.
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
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason);
      if (signal.aborted) {
        promise.catch(() => undefined); // Its failure says no more than the abort does.
        abort();
        return;
      }
      signal.addEventListener("abort", abort, { once: true });
      promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  }

  /** What the caller sees for something thrown in the call. */
  failure(thrown: unknown): Problem {
    if (!this.signal.aborted || !isAbort(thrown, this.signal)) {
      return toProblem(thrown);
    }
    const reason: unknown = this.signal.reason;
    return toProblem(
      reason instanceof ConnectError
        ? reason
        : new ConnectError("the caller is gone", Code.Canceled, undefined, undefined, reason),
    );
  }

  /** Tells of the end; who hears of it first tells, and once is enough. */
  ended(found: Problem | undefined): void {
    const { listener } = this;
    this.listener = undefined;
    listener?.ended(found);
  }

  [Symbol.dispose](): void {
    this.#release?.();
  }
}

function timedOut(limitMs: number): Problem {
  return problem("CALL_TIMEOUT", `the call did not end within the ${limitMs} ms its caller allows`);
}

/** True for what `signal.throwIfAborted` and Node's own functions throw on an abort. */
function isAbort(thrown: unknown, signal: AbortSignal): boolean {
  return thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError");
}
