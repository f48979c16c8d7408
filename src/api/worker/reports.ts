/**
 * What a worker reports of its calls besides their ends: lines, progress, metrics. Reports come
 * by a stream of their own, which may lag behind the results. A result that names a report waits
 * for it, so that what a call counted is counted before the call is answered, but not for long.
 */
import { LogRateLimit } from "../../pool/log-rate-limit.ts";
import type { RemoteResult } from "../../pool/remote/messages.ts";
import type { RemoteWorker } from "../../pool/remote/remote-worker.ts";

/** How long a result waits for the reports before it. */
const REPORT_WAIT_MS = 5_000;

/** Results that wait for reports: with more, all go on. */
const MAX_WAITING_RESULTS = 10_000;

interface ReportsOptions {
  readonly worker: RemoteWorker;
  readonly logLinesPerSecond: number;
  /** A line of output, or of the node about it. */
  onOutput(line: string, stream: "stdout" | "stderr" | "node"): void;
  /** Called when a result breaks the protocol. */
  onForged(fault: string): void;
}

export class Reports implements Disposable {
  readonly #options: ReportsOptions;
  readonly #rate: LogRateLimit;
  /** The number of the last report that was taken. */
  #taken = 0;
  #waiting: { readonly after: number; readonly results: readonly RemoteResult[] }[] = [];
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReportsOptions) {
    this.#options = options;
    this.#rate = new LogRateLimit(options.logLinesPerSecond, (message) =>
      options.onOutput(message, "node"),
    );
  }

  /** False when a line of this length is beyond the rate of the worker. */
  admits(length: number): boolean {
    return this.#rate.admit(length);
  }

  /** A line of output. */
  output(line: string, stream: "stdout" | "stderr" | "node"): void {
    this.#options.onOutput(line, stream);
  }

  /** All up to this report was taken. */
  taken(sequence: number): void {
    this.#taken = Math.max(this.#taken, sequence);
    while ((this.#waiting[0]?.after ?? Number.POSITIVE_INFINITY) <= this.#taken) {
      this.#finishNext();
    }
  }

  /** Takes results in their order, each when the reports before it were taken. */
  finish(results: readonly RemoteResult[], after: number): void {
    if (this.#waiting.length === 0 && after <= this.#taken) {
      this.#finish(results);
      return;
    }
    this.#waiting.push({ after, results });
    this.#count += results.length;
    this.#timer ??= setTimeout(() => this.#finishAll(), REPORT_WAIT_MS);
    if (this.#count > MAX_WAITING_RESULTS) {
      this.#finishAll();
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#rate[Symbol.dispose]();
  }

  #finishAll(): void {
    while (this.#waiting.length > 0) {
      this.#finishNext();
    }
  }

  #finishNext(): void {
    const next = this.#waiting.shift();
    if (next) {
      this.#count -= next.results.length;
      this.#finish(next.results);
    }
    if (this.#waiting.length === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  #finish(results: readonly RemoteResult[]): void {
    for (const result of results) {
      const fault = this.#options.worker.finish(result);
      if (fault !== undefined) {
        this.#options.onForged(fault);
        return;
      }
    }
  }
}
