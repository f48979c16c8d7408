import type { Problem } from "../errors.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { AbortReason, Call, CallFailure, LogLevel, Payload } from "../protocol/messages.ts";

/** How an execution ended. */
export type ExecutionEnd =
  | { readonly kind: "result"; readonly result: Payload }
  | { readonly kind: "failure"; readonly failure: CallFailure }
  /** Its files could not be brought to the worker, or back: the call can be made again. */
  | { readonly kind: "unavailable"; readonly problem: Problem }
  /** It was aborted for this reason, whatever the function did after that. */
  | { readonly kind: "aborted"; readonly reason: AbortReason }
  /** The worker died. */
  | { readonly kind: "lost"; readonly message: string }
  /** The node ended the worker for another execution's sake, or before this one began. */
  | { readonly kind: "displaced"; readonly message: string };

export interface ExecutionListener {
  onEnd(end: ExecutionEnd): void;
  onProgress?(fraction: number, message: string): void;
  onLog?(line: { level: LogLevel; message: string; fieldsJson?: string }): void;
}

/** Which call it is. */
export interface ExecutedCall extends Pick<Call, "id" | "endpoint"> {
  readonly kind: EndpointManifest["kind"];
}

/** What an execution needs of the worker that it runs in. */
export interface ExecutionHost {
  sendAbort(id: number, reason: AbortReason): void;
  /** Calls `look` of its executions at this time, by `performance.now()`. */
  expect(deadlineMs: number): void;
  /** Ends the process, and every other execution in it without its fault. */
  sacrifice(message: string): void;
}

/**
 * One call under way in a worker. At its deadline, and when it is aborted, it
 * goes the same way: `ctx.signal` aborts, the function has a grace to end by
 * itself, then the worker is killed, because nothing else stops a function
 * that does not listen or blocks its event loop.
 */
export class Execution {
  readonly call: ExecutedCall;
  readonly #listener: ExecutionListener;
  readonly #host: ExecutionHost;
  readonly #graceMs: number;
  /** By `performance.now()`; Infinity while the function does not run. */
  #deadlineMs = Number.POSITIVE_INFINITY;
  #grace: NodeJS.Timeout | undefined;
  #abortedFor: AbortReason | undefined;

  constructor(
    call: ExecutedCall,
    listener: ExecutionListener,
    options: { readonly host: ExecutionHost; readonly graceMs: number; readonly timeoutMs: number },
  ) {
    this.call = call;
    this.#listener = listener;
    this.#host = options.host;
    this.#graceMs = options.graceMs;
    this.resume(options.timeoutMs);
  }

  /** Aborts it at its deadline; returns that until then. */
  look(nowMs: number): number {
    if (this.#deadlineMs <= nowMs) {
      this.abort("timeout");
    }
    return this.#deadlineMs;
  }

  /** Asks the function to end; later reasons do not replace the first. */
  abort(reason: AbortReason): void {
    if (this.#abortedFor !== undefined) {
      return;
    }
    this.#abortedFor = reason;
    this.pause();
    this.#grace = setTimeout(
      () =>
        this.#host.sacrifice(
          `endpoint ${this.call.endpoint} went on ${this.#graceMs} ms after its abort (${reason})`,
        ),
      this.#graceMs,
    );
    this.#host.sendAbort(this.call.id, reason);
  }

  /** It was aborted, and what it returns does not count any more. */
  get isVoid(): boolean {
    return this.#abortedFor !== undefined && this.#abortedFor !== "shutdown";
  }

  /** The function does not run yet, or no more: what time its files take does not count. */
  pause(): void {
    this.#deadlineMs = Number.POSITIVE_INFINITY;
  }

  /** The function begins, after a pause. */
  resume(timeoutMs: number): void {
    if (this.#abortedFor === undefined) {
      this.#deadlineMs = performance.now() + timeoutMs;
      this.#host.expect(this.#deadlineMs);
    }
  }

  progress(fraction: number, message: string): void {
    this.#listener.onProgress?.(fraction, message);
  }

  log(line: { level: LogLevel; message: string; fieldsJson?: string }): void {
    this.#listener.onLog?.(line);
  }

  /** The function returned. */
  succeed(result: Payload): void {
    this.#end({ kind: "result", result });
  }

  /** The function threw, or its result was refused. */
  fail(failure: CallFailure): void {
    this.#end({ kind: "failure", failure });
  }

  /** Its files could not be brought to the worker, or back. */
  giveUp(problem: Problem): void {
    this.#end({ kind: "unavailable", problem });
  }

  /** The worker died. */
  lose(message: string): void {
    this.#end({ kind: "lost", message });
  }

  /** The worker was ended, and this execution was not why. */
  displace(message: string): void {
    this.#end({ kind: "displaced", message });
  }

  /**
   * An abort decides how the execution ended, except that work which was
   * finished while the node shuts down is not thrown away.
   */
  #end(end: ExecutionEnd): void {
    clearTimeout(this.#grace);
    const reason = this.#abortedFor;
    const stands = reason === undefined || (reason === "shutdown" && end.kind === "result");
    this.#listener.onEnd(stands ? end : { kind: "aborted", reason });
  }
}
