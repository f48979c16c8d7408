/**
 * The end of a worker on a machine that ends: it leaves as soon as the longest call that it takes,
 * by the timeouts of its endpoints, might not end before. So no call is cut off by the end.
 */
import type { RegisterResponse } from "../../gen/tessera/v1/worker_pb.js";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { takersOf } from "../service/mounts.ts";
import { Alarm } from "../time/alarm.ts";

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
  readonly #alarm: Alarm | undefined;

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
    const leavesAtMs = untilMs - this.longestMs - END_MARGIN_MS;
    const ending = new AbortController();
    if (leavesAtMs <= Date.now()) {
      ending.abort();
    } else {
      this.#alarm = new Alarm(() => ending.abort(), Date.now);
      this.#alarm.set(leavesAtMs);
    }
    this.signal = AbortSignal.any([leave, ending.signal]);
  }

  [Symbol.dispose](): void {
    this.#alarm?.[Symbol.dispose]();
  }
}
