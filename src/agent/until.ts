/**
 * The end of a worker on a machine that ends: it leaves as soon as the longest call that it takes,
 * by the timeouts of its endpoints, might not end before. So no call is cut off by the end.
 */
import type { RegisterResponse } from "../../gen/tessera/v1/worker_pb.js";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { takersOf } from "../service/mounts.ts";
import { MAX_TIMER_MS } from "../time/alarm.ts";

/** Time for the end of the last call to be told, before the machine ends. */
export const END_MARGIN_MS = 30_000;

interface MachineEndOptions {
  /** When the machine ends, by `Date.now`; undefined: it stays. */
  readonly untilMs: number | undefined;
  /** Aborts when the worker is to leave for another reason. */
  readonly leave: AbortSignal;
}

export class MachineEnd implements Disposable {
  /** Aborts when the worker is to leave. */
  readonly signal: AbortSignal;
  /** The longest timeout of what it takes. */
  readonly longestMs: number;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(
    { manifestJson }: Pick<RegisterResponse, "manifestJson">,
    { untilMs, leave }: MachineEndOptions,
  ) {
    if (untilMs === undefined) {
      this.signal = leave;
      this.longestMs = 0;
      return;
    }
    const takers = takersOf(JSON.parse(manifestJson) as ServiceManifest);
    this.longestMs = Math.max(0, ...takers.map(({ timeoutMs }) => timeoutMs));
    const leftMs = untilMs - this.longestMs - END_MARGIN_MS - Date.now();
    // A longer time than a timer has is longer than that of any cluster's job.
    if (leftMs > MAX_TIMER_MS) {
      this.signal = leave;
      return;
    }
    const ending = new AbortController();
    if (leftMs <= 0) {
      ending.abort();
    } else {
      this.#timer = setTimeout(() => ending.abort(), leftMs);
    }
    this.signal = AbortSignal.any([leave, ending.signal]);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
