/** Slots: the right to run one call of an endpoint in a worker, and how many a worker has. */
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { isMountName } from "../../service/mounts.ts";
import type { GpuTime } from "../gpus/gpu-time.ts";
import {
  countsCalls,
  type ExecuteOptions,
  type Execution,
  type ExecutionListener,
} from "./execution.ts";
import type { MountAgent } from "./mount-agents.ts";

/** The worker and revision that ran a call, for the log. */
interface RanIn {
  readonly worker: string;
  /** Undefined where a service has no revisions. */
  readonly revision?: number;
}

/** The worker, as far as its slots need it. */
interface SlotOwner {
  readonly id: string;
  readonly gpuTime?: GpuTime | undefined;
  readonly revision: number | undefined;
  readonly capacity: Capacity;
  agentOf(mount: string): MountAgent | undefined;
  execute(call: ExecuteOptions, listener: ExecutionListener): Execution;
  release(endpoint: EndpointManifest): void;
}

/** A call for a slot, which knows its endpoint. */
export type SlotCall = Omit<
  ExecuteOptions,
  "endpoint" | "kind" | "timeoutMs" | "abortGraceMs" | "isCounted" | "stream" | "agent"
> & {
  /** Default: that of the endpoint. */
  readonly timeoutMs?: number;
};

/** The right to run one call, until it is released. */
export interface Slot {
  readonly workerId: string;
  readonly endpoint: string;
  readonly ranIn: RanIn;
  /** Undefined where the worker has no GPU. */
  readonly gpuTime?: GpuTime | undefined;
  /** True when nothing else runs in the worker meanwhile. */
  readonly alone: boolean;
  /** Connections to the mounted server that the slot is of; undefined for an endpoint. */
  readonly agent: MountAgent | undefined;
  execute(call: SlotCall, listener: ExecutionListener): Execution;
  /** Releases the slot; a second call does nothing. */
  release(): void;
}

/** A slot taken in a worker. */
export class WorkerSlot implements Slot {
  readonly workerId: string;
  readonly #worker: SlotOwner;
  readonly #endpoint: EndpointManifest;
  readonly #onOpen: (() => void) | undefined;
  readonly #onReleased: (() => void) | undefined;
  #held = true;

  get endpoint(): string {
    return this.#endpoint.name;
  }

  get gpuTime(): GpuTime | undefined {
    return this.#worker.gpuTime;
  }

  get alone(): boolean {
    return this.#onOpen !== undefined;
  }

  get agent(): MountAgent | undefined {
    return this.#worker.agentOf(this.#endpoint.name);
  }

  get ranIn(): RanIn {
    const { revision } = this.#worker;
    return { worker: this.workerId, ...(revision !== undefined && { revision }) };
  }

  /**
   * `onOpen`: opens the worker to others, who have been kept out; called with the release.
   * `onReleased`: called after the release of a slot of a mounted server, which calls and tasks
   * share.
   */
  constructor(
    worker: SlotOwner,
    endpoint: EndpointManifest,
    {
      onOpen,
      onReleased,
    }: { readonly onOpen?: () => void; readonly onReleased?: (() => void) | undefined } = {},
  ) {
    this.workerId = worker.id;
    this.#onOpen = onOpen;
    this.#onReleased = isMountName(endpoint.name) ? onReleased : undefined;
    this.#worker = worker;
    this.#endpoint = endpoint;
    worker.capacity.take(endpoint);
  }

  execute(call: SlotCall, listener: ExecutionListener): Execution {
    const { name, kind, timeoutMs, abortGraceMs, stream } = this.#endpoint;
    const agent = isMountName(name) ? this.agent : undefined;
    const isCounted = countsCalls(this.#endpoint);
    const facts = { endpoint: name, kind, timeoutMs, abortGraceMs, isCounted, stream, agent };
    return this.#worker.execute({ ...facts, ...call }, listener);
  }

  release(): void {
    if (this.#held) {
      this.#held = false;
      this.#onOpen?.();
      this.#worker.release(this.#endpoint);
      this.#onReleased?.();
    }
  }
}

/**
 * The slots of one worker. Each endpoint has its own slots, so that one with a
 * long queue does not keep the others waiting. When a call has to be killed,
 * the others in the worker are run again, and it does not count as a failure.
 * A worker that is closed has no free slot: it is kept for one call (`isolation.ts`).
 */
export class Capacity {
  readonly #running = new Map<string, number>();
  /** When the last slot was given back or, before any was taken, when it was made. */
  #idleSinceMs = performance.now();
  #isClosed = false;

  /** The number of free slots of the endpoint. */
  free(endpoint: EndpointManifest): number {
    return this.#isClosed ? 0 : endpoint.concurrency - this.taken(endpoint);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
  }

  open(): void {
    this.#isClosed = false;
  }

  /** The number of taken slots of the endpoint. */
  taken({ name }: EndpointManifest): number {
    return this.#running.get(name) ?? 0;
  }

  /** The number of taken slots of mounted servers. */
  get mounted(): number {
    let count = 0;
    for (const [name, taken] of this.#running) {
      count += isMountName(name) ? taken : 0;
    }
    return count;
  }

  /** True when no slot is taken. */
  get idle(): boolean {
    return this.#running.size === 0;
  }

  /** Since when no slot is taken, by `performance.now`; only while `idle`. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  take({ name }: EndpointManifest): void {
    this.#running.set(name, (this.#running.get(name) ?? 0) + 1);
  }

  giveBack({ name }: EndpointManifest): void {
    const left = (this.#running.get(name) ?? 0) - 1;
    if (left > 0) {
      this.#running.set(name, left);
    } else {
      this.#running.delete(name);
      if (this.idle) {
        this.#idleSinceMs = performance.now();
      }
    }
  }
}
