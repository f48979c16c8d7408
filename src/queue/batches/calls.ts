/**
 * Batches of api calls. Calls that wait for a slot stand in a queue for each endpoint; the
 * oldest and those like it get one slot together, at once under load, else when the batch is
 * full or the wait is over.
 */
import { shareSlot } from "../../pool/calls/shared-slot.ts";
import type { Slot } from "../../pool/pool.ts";
import type { BatchManifest, EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import { type BatchItem, BatchWait, batchItem, together } from "./group.ts";

/** A call that waits to be put together with others. */
interface WaitingCall {
  readonly endpoint: EndpointManifest;
  /** Gives it its share of a slot. */
  give(share: Slot): void;
}

interface CallBatchesOptions {
  reserve(endpoint: EndpointManifest): Slot | undefined;
  /** A batch of calls goes; the oldest has waited this long. */
  onFormed(endpoint: string, size: number, waitSeconds: number): void;
}

interface Item extends BatchItem {
  readonly call: WaitingCall;
  /** By `performance.now`. */
  readonly cameMs: number;
}

interface Queue {
  readonly endpoint: EndpointManifest;
  readonly batch: BatchManifest;
  readonly wait: BatchWait;
  readonly items: Map<WaitingCall, Item>;
  timer: NodeJS.Timeout | undefined;
  /** True when calls wait for a slot, and not for other calls. */
  starved: boolean;
}

export class CallBatches {
  readonly #options: CallBatchesOptions;
  readonly #queues = new Map<string, Queue>();

  constructor(options: CallBatchesOptions) {
    this.#options = options;
  }

  /**
   * The call waits from now on, until it is given a share or removed. True when it waits for a
   * slot, and not only for other calls.
   */
  add(call: WaitingCall, payload: Payload, batch: BatchManifest): boolean {
    const queue = this.#queueOf(call.endpoint, batch);
    const item = batchItem(payload, batch);
    queue.items.set(call, { ...item, call, cameMs: performance.now() });
    this.#form(queue, false);
    return queue.starved;
  }

  /** The call does not wait any more. */
  remove(call: WaitingCall): void {
    const queue = this.#queues.get(call.endpoint.name);
    queue?.items.delete(call);
    if (queue?.items.size === 0) {
      clearTimeout(queue.timer);
      queue.timer = undefined;
    }
  }

  /** A slot became free, or a worker ready. */
  slotFree(): void {
    for (const queue of this.#queues.values()) {
      if (queue.starved) {
        this.#form(queue, true);
      }
    }
  }

  #queueOf(endpoint: EndpointManifest, batch: BatchManifest): Queue {
    const found = this.#queues.get(endpoint.name);
    // Another revision may put its calls together in another way.
    if (found?.endpoint === endpoint) {
      return found;
    }
    const wait = new BatchWait(batch.maxWaitMs);
    const items = found?.items ?? new Map<WaitingCall, Item>();
    clearTimeout(found?.timer);
    const queue = { endpoint, batch, wait, items, timer: undefined, starved: items.size > 0 };
    this.#queues.set(endpoint.name, queue);
    return queue;
  }

  #form(queue: Queue, now: boolean): void {
    const { endpoint, batch, wait, items } = queue;
    for (;;) {
      const { group, full } = together(items.values(), batch);
      const [oldest] = group;
      if (oldest === undefined) {
        clearTimeout(queue.timer);
        queue.timer = undefined;
        queue.starved = false;
        return;
      }
      // Without a slot they wait for one, and whatever has come by then goes at once.
      const slot = this.#options.reserve(endpoint);
      queue.starved = slot === undefined;
      if (slot === undefined) {
        return;
      }
      const waitedMs = performance.now() - oldest.cameMs;
      if (!now && !full && waitedMs < wait.ms) {
        slot.release();
        queue.timer ??= setTimeout(() => {
          queue.timer = undefined;
          this.#form(queue, true);
        }, wait.ms - waitedMs);
        return;
      }
      wait.formed(group.length);
      this.#options.onFormed(endpoint.name, group.length, waitedMs / 1_000);
      const shares = shareSlot(slot, group.length);
      for (const [index, { call }] of group.entries()) {
        items.delete(call);
        call.give(shares[index] as Slot);
      }
    }
  }
}
