/**
 * Batches of tasks: how long the tasks of an endpoint wait for others before they are
 * claimed, and how those that were claimed for one worker share its slots. Nothing is claimed
 * before it can run, so a crash loses nothing.
 */
import { shareSlot } from "../../pool/calls/shared-slot.ts";
import type { Slot } from "../../pool/pool.ts";
import type { BatchManifest } from "../../protocol/manifest.ts";
import type { ClaimedTask } from "../../storage/storage.ts";
import { BatchWait, batchItem, together } from "./group.ts";

/** The wait of the tasks of one endpoint. */
export class TaskBatchWait implements Disposable {
  readonly batch: BatchManifest;
  readonly #wait: BatchWait;
  readonly #onDue: () => void;
  /** Tasks that came since the last claim. */
  #came = 0;
  #timer: NodeJS.Timeout | undefined;
  /** True when tasks may be claimed. */
  #due = true;

  constructor(batch: BatchManifest, onDue: () => void) {
    this.batch = batch;
    this.#wait = new BatchWait(batch.maxWaitMs);
    this.#onDue = onDue;
  }

  /** True when waiting tasks are to be claimed for the slots that are free. */
  get due(): boolean {
    return this.#due;
  }

  /** Tasks came to an empty queue: this number, or more. */
  came(count: number): void {
    this.#came += count;
    if (this.#due || this.#came >= this.batch.maxSize || this.#wait.ms === 0) {
      this.#becomeDue();
    } else {
      this.#timer ??= setTimeout(() => {
        this.#becomeDue();
        this.#onDue();
      }, this.#wait.ms);
    }
  }

  /** Tasks may be waiting for longer: they are claimed without another wait. */
  hurry(): void {
    this.#becomeDue();
  }

  /** A batch of this number of tasks was formed. */
  formed(size: number): void {
    this.#wait.formed(size);
  }

  /** No task is waiting any more: the next one waits for others. */
  emptied(): void {
    this.#came = 0;
    this.#due = false;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #becomeDue(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = true;
  }
}

/** A claimed task, and its share of a slot. */
interface SharedTask {
  readonly claimed: ClaimedTask;
  readonly slot: Slot;
}

/**
 * Divides the slots among tasks that were claimed for the same worker: the oldest, and those
 * like it, in each. Returns the tasks that found no slot; used slots are taken off the list.
 */
export function shareSlots(
  claimed: readonly ClaimedTask[],
  free: Slot[],
  batch: BatchManifest,
): { readonly shared: readonly SharedTask[][]; readonly left: readonly ClaimedTask[] } {
  let items = claimed.map((each) => ({ ...batchItem(each.arguments, batch), claimed: each }));
  const shared: SharedTask[][] = [];
  for (let slot = items.length > 0 ? free.shift() : undefined; slot; ) {
    const group = new Set(together(items, batch).group);
    const shares = shareSlot(slot, group.size);
    shared.push(
      [...group].map((item, index) => ({ claimed: item.claimed, slot: shares[index] as Slot })),
    );
    items = items.filter((item) => !group.has(item));
    slot = items.length > 0 ? free.shift() : undefined;
  }
  return { shared, left: items.map((item) => item.claimed) };
}
