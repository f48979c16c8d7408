/**
 * The `TaskContext` of one call. Most calls use little of it, so each part is
 * created lazily.
 */

import type { RequestHead } from "../protocol/heads.ts";
import { type AbortReason, type Call, unpackPayload } from "../protocol/messages.ts";
import { faultOfUnit, MAX_UNITS_PER_CALL, type Units } from "../protocol/units.ts";
import type { CallRequest, CallResponse, TaskContext, TaskLog } from "../sdk/context.ts";
import type { EndpointKind } from "../sdk/options.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";
import { CallLog, type CallLogOutlets } from "./log.ts";
import { OutputLines } from "./output.ts";
import { SaidResponse } from "./response.ts";

/** Least time between two messages of progress of one call. */
const PROGRESS_SEND_INTERVAL_MS = 50;
/** Text of a report of progress. */
const MAX_PROGRESS_MESSAGE_CHARACTERS = 1024;

const ABORT_MESSAGES: Readonly<Record<AbortReason, string>> = {
  timeout: "the time of this call is up",
  cancelled: "the task was cancelled",
  shutdown: "the server is stopping",
  caller_gone: "the caller is gone",
};

/** Where a call's context sends what the function reports. */
export interface CallOutlets extends CallLogOutlets {
  readonly meters: Meters;
}

export class CallContext implements TaskContext {
  readonly taskId: string;
  readonly attempt: number;
  readonly #outlets: CallOutlets;
  readonly #endpoint: string;
  readonly #id: number;
  readonly #deadlineMs: number;
  readonly #kind: EndpointKind;
  readonly #trace: string | undefined;
  #controller: AbortController | undefined;
  #abortReason: AbortReason | undefined;
  #reporter: ProgressReporter | undefined;
  #progress: TaskContext["progress"] | undefined;
  #usage: UsageReport | undefined;
  #log: CallLog | undefined;
  #output: OutputLines | undefined;
  readonly #request: RequestHead | undefined;
  #shown: CallRequest | undefined;
  #said: SaidResponse | undefined;
  #ended = false;

  constructor(outlets: CallOutlets, call: Call, kind: EndpointKind) {
    this.#outlets = outlets;
    this.#endpoint = call.endpoint;
    this.#id = call.id;
    this.#deadlineMs = call.deadlineMs;
    this.#kind = kind;
    this.#trace = call.trace;
    this.#request = unpackPayload(call.arguments).request;
    this.taskId = call.taskId;
    this.attempt = call.attempt;
  }

  get request(): CallRequest {
    if (this.#request === undefined) {
      throw new Error(
        "the request is not shown to this endpoint: declare the headers that it reads, " +
          'headers: ["x-tenant"], or [] for the URL alone',
      );
    }
    this.#shown ??= shownRequest(this.#request);
    return this.#shown;
  }

  get response(): CallResponse {
    this.#said ??= new SaidResponse();
    return this.#said;
  }

  /** What the function has said of its answer so far; undefined for nothing. */
  get said(): CallResponse | undefined {
    return this.#said;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) {
        this.#controller.abort(abortError(this.#abortReason));
      }
    }
    return this.#controller.signal;
  }

  get progress(): TaskContext["progress"] {
    this.#progress ??= this.#kind === "api" ? () => {} : this.#makeProgress();
    return this.#progress;
  }

  get usage(): TaskContext["usage"] {
    this.#usage ??= new UsageReport((message) => this.log.warn(message));
    return this.#usage.add;
  }

  get log(): TaskLog {
    this.#log ??= new CallLog(this.#outlets, this.#id);
    return this.#log;
  }

  /** Where its function's output goes; undefined once the call has ended. */
  get output(): OutputLines | undefined {
    if (!this.#ended) {
      this.#output ??= new OutputLines((level, line) => this.log[level](line));
    }
    return this.#ended ? undefined : this.#output;
  }

  get metrics(): TaskContext["metrics"] {
    return this.#outlets.meters.of(this.#endpoint);
  }

  get traceparent(): string | undefined {
    return this.#trace?.split(" ", 1)[0];
  }

  get tracestate(): string | undefined {
    return this.#trace?.slice(`${this.traceparent} `.length) || undefined;
  }

  get deadline(): Date {
    return new Date(this.#deadlineMs);
  }

  /** Why the call was aborted; undefined when it was not. */
  get abortReason(): AbortReason | undefined {
    return this.#abortReason;
  }

  abort(reason: AbortReason): void {
    if (this.#abortReason === undefined) {
      this.#abortReason = reason;
      this.#controller?.abort(abortError(reason));
    }
  }

  /** Sends pending progress, log lines and what was used, and drops everything that comes later. */
  end(): void {
    this.#ended = true;
    this.#output?.end();
    this.#reporter?.flush();
    const units = this.#usage?.take();
    if (units !== undefined) {
      this.#outlets.channel.send({ type: "usage", id: this.#id, units });
    }
    this.#log?.close();
  }

  #makeProgress(): TaskContext["progress"] {
    const reporter = new ProgressReporter(this.#outlets.channel, this.#id);
    this.#reporter = reporter;
    return (fraction, message) => {
      if (!this.#ended) {
        reporter.report(fraction, message);
      }
    };
  }
}

function shownRequest({ method, url, headers, client }: RequestHead): CallRequest {
  const given = headers.map(([name, value]): [string, string] => [name, value]);
  return { method, url: new URL(url), headers: new Headers(given), client: client || undefined };
}

function abortError(reason: AbortReason): DOMException {
  return new DOMException(
    ABORT_MESSAGES[reason],
    reason === "timeout" ? "TimeoutError" : "AbortError",
  );
}

// A rate limit for the progress of one call: one report per interval, and always the last one.

/**
 * A report after the interval is sent at once, even from a function that blocks the
 * event loop. An earlier one waits for the timer, and the next one replaces it.
 */
class ProgressReporter {
  readonly #channel: Channel;
  readonly #id: number;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #waiting: { readonly fraction: number; readonly message: string } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  report(fraction: number, message: unknown): void {
    if (typeof fraction !== "number" || Number.isNaN(fraction)) {
      return;
    }
    this.#waiting = {
      fraction: Math.min(1, Math.max(0, fraction)),
      message:
        message === undefined ? "" : String(message).slice(0, MAX_PROGRESS_MESSAGE_CHARACTERS),
    };
    const dueInMs = this.#sentAtMs + PROGRESS_SEND_INTERVAL_MS - performance.now();
    if (dueInMs <= 0) {
      this.flush();
    } else {
      this.#timer ??= setTimeout(() => this.flush(), dueInMs);
    }
  }

  /** Sends the pending report, if any. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      this.#sentAtMs = performance.now();
      this.#channel.send({ type: "progress", id: this.#id, ...waiting });
    }
  }
}

/** What a function reports of a call, summed up until its end. Nothing that it reports fails it. */
class UsageReport {
  readonly #sums = new Map<string, number>();
  readonly #warn: (message: string) => void;
  #ended = false;
  #warned = false;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  readonly add = (units: Units): void => {
    for (const [name, amount] of Object.entries(this.#ended ? {} : units)) {
      const before = this.#sums.get(name);
      const isFull = before === undefined && this.#sums.size === MAX_UNITS_PER_CALL;
      const sum = typeof amount === "number" ? (before ?? 0) + amount : amount;
      const fault = isFull
        ? `a call reports at most ${MAX_UNITS_PER_CALL} units`
        : (faultOfUnit(name, amount) ?? faultOfUnit(name, sum));
      if (fault === undefined) {
        this.#sums.set(name, sum);
      } else if (!this.#warned) {
        this.#warned = true;
        // An object may have no text, or throw.
        const shown = typeof amount === "object" ? typeof amount : String(amount).slice(0, 100);
        const what = `${JSON.stringify(name.slice(0, 100))}: ${shown}`;
        this.#warn(`usage of ${what} is not counted: ${fault}`);
      }
    }
  };

  /** All of it, at the end; undefined: nothing was reported. */
  take(): Units | undefined {
    this.#ended = true;
    return this.#sums.size === 0 ? undefined : Object.fromEntries(this.#sums);
  }
}
