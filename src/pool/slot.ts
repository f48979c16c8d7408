/** Slots: the right to run one call of an endpoint in a worker, and how many a worker has. */
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Execution, ExecutionListener } from "./execution.ts";
import type { ExecuteOptions } from "./options.ts";

/** The worker and revision that ran a call, for the log. */
export interface RanIn {
  readonly worker: string;
  /** Undefined where a service has no revisions. */
  readonly revision?: number;
}

/** The worker, as far as its slots need it. */
export interface SlotOwner {
  readonly id: string;
  readonly revision: number | undefined;
  readonly capacity: Capacity;
  execute(call: ExecuteOptions, listener: ExecutionListener): Execution;
  release(endpoint: EndpointManifest): void;
}

/** A call for a slot, which knows its endpoint. */
export type SlotCall = Omit<ExecuteOptions, "endpoint" | "kind" | "timeoutMs" | "stream">;

/** The right to run one call, until it is released. */
export interface Slot {
  readonly workerId: string;
  readonly endpoint: string;
  readonly ranIn: RanIn;
  execute(call: SlotCall, listener: ExecutionListener): Execution;
  /** Releases the slot; a second call does nothing. */
  release(): void;
}

/** A slot taken in a worker. */
export class WorkerSlot implements Slot {
  readonly workerId: string;
  readonly #worker: SlotOwner;
  readonly #endpoint: EndpointManifest;
  #held = true;

  get endpoint(): string {
    return this.#endpoint.name;
  }

  get ranIn(): RanIn {
    const { revision } = this.#worker;
    return { worker: this.workerId, ...(revision !== undefined && { revision }) };
  }

  constructor(worker: SlotOwner, endpoint: EndpointManifest) {
    this.workerId = worker.id;
    this.#worker = worker;
    this.#endpoint = endpoint;
    worker.capacity.take(endpoint);
  }

  execute(call: SlotCall, listener: ExecutionListener): Execution {
    const { name, kind, timeoutMs, stream } = this.#endpoint;
    return this.#worker.execute({ ...call, endpoint: name, kind, timeoutMs, stream }, listener);
  }

  release(): void {
    if (this.#held) {
      this.#held = false;
      this.#worker.release(this.#endpoint);
    }
  }
}

/**
 * The slots of one worker. Each endpoint has its own slots, so that one with a
 * long queue does not keep the others waiting. When a call has to be killed,
 * the others in the worker are run again, and it does not count as a failure.
 */
export class Capacity {
  readonly #running = new Map<string, number>();
  /** When the last slot was given back or, before any was taken, when it was made. */
  #idleSinceMs = performance.now();

  /** The number of free slots of the endpoint. */
  free(endpoint: EndpointManifest): number {
    return endpoint.concurrency - this.taken(endpoint);
  }

  /** The number of taken slots of the endpoint. */
  taken({ name }: EndpointManifest): number {
    return this.#running.get(name) ?? 0;
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
