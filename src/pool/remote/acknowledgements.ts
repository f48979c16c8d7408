/**
 * Acknowledgements: tells a worker which of its results are recorded, so that it may forget them.
 * Nobody waits for one, so those of a moment go in one message.
 */
import type { EndRecord, ExecutionEnd, ExecutionListener } from "../calls/execution.ts";

/** How long acknowledgements are collected. */
const ACKNOWLEDGE_DELAY_MS = 20;

/** Acknowledgements of one message: with as many, it is sent at once. */
const MAX_ACKNOWLEDGED = 1_000;

export class Acknowledgements {
  readonly #send: (ids: readonly number[], stale: readonly number[]) => void;
  /** Calls that have ended, until that is recorded. */
  readonly #recording = new Set<number>();
  #ids: number[] = [];
  #stale: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #onRecorded: () => void;

  constructor(
    send: (ids: readonly number[], stale: readonly number[]) => void,
    onRecorded: () => void,
  ) {
    this.#send = send;
    this.#onRecorded = onRecorded;
  }

  /** True while the end of a call is being recorded. */
  awaits(id: number): boolean {
    return this.#recording.has(id);
  }

  /** True when the ends of all calls are recorded. */
  get isComplete(): boolean {
    return this.#recording.size === 0;
  }

  /** A call has ended: acknowledges it when `recorded` resolves, or at once without. */
  ended(id: number, recorded: Promise<EndRecord> | undefined): void {
    if (recorded === undefined) {
      this.acknowledge(id);
      return;
    }
    this.#recording.add(id);
    void recorded.then((record) => {
      this.#recording.delete(id);
      // A worker keeps what this node gives up, and brings it to the next one.
      if (record !== "given_up") {
        this.acknowledge(id, { isStale: record === "stale" });
      }
      this.#onRecorded();
    });
  }

  /** `isStale`: the result counted for nothing, because the call had ended before. */
  acknowledge(id: number, { isStale = false } = {}): void {
    if (isStale) {
      this.#stale.push(id);
    }
    if (this.#ids.push(id) >= MAX_ACKNOWLEDGED) {
      this.flush();
      return;
    }
    this.#timer ??= setTimeout(() => this.flush(), ACKNOWLEDGE_DELAY_MS);
  }

  /** Sends now what was acknowledged. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#ids.length > 0) {
      const [ids, stale] = [this.#ids, this.#stale];
      this.#ids = [];
      this.#stale = [];
      this.#send(ids, stale);
    }
  }
}

/** A listener of a call that tells besides what becomes of its end. */
export function acknowledging(
  listener: ExecutionListener,
  onEnded: (recorded: Promise<EndRecord> | undefined) => void,
): ExecutionListener {
  return {
    onEnd: (end: ExecutionEnd) => onEnded(listener.onEnd(end) ?? undefined),
    onAbort: (reason) => listener.onAbort?.(reason),
    onChunk: (piece, sequence) => listener.onChunk?.(piece, sequence),
    onResponse: (response) => listener.onResponse?.(response),
    onProgress: (fraction, message) => listener.onProgress?.(fraction, message),
    onUsage: (units) => listener.onUsage?.(units),
    onLog: (line) => listener.onLog?.(line),
  };
}
