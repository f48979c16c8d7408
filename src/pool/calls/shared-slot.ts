/**
 * A slot that several calls share, because a function takes them together. Each call gets a
 * share, which it uses like a slot of its own: it executes once, or is released unused. The
 * worker gets all calls in one message, and the slot is free when the last share is.
 */
import { BatchPost } from "./batch-post.ts";
import type { ExecutionListener, Slot, SlotCall } from "./execution.ts";

/** Divides a slot among calls. */
export function shareSlot(slot: Slot, count: number): Slot[] {
  if (count === 1) {
    return [slot];
  }
  const post = new BatchPost(count);
  let held = count;
  const release = (): void => {
    held -= 1;
    if (held === 0) {
      slot.release();
    }
  };
  return Array.from({ length: count }, () => new Share(slot, post, release));
}

class Share implements Slot {
  readonly #slot: Slot;
  readonly #post: BatchPost;
  readonly #release: () => void;
  #held = true;
  #used = false;

  constructor(slot: Slot, post: BatchPost, release: () => void) {
    this.#slot = slot;
    this.#post = post;
    this.#release = release;
  }

  get workerId(): string {
    return this.#slot.workerId;
  }

  get endpoint(): string {
    return this.#slot.endpoint;
  }

  get gpuTime() {
    return this.#slot.gpuTime;
  }

  get alone() {
    return this.#slot.alone;
  }

  get agent() {
    return this.#slot.agent;
  }

  get ranIn() {
    return this.#slot.ranIn;
  }

  execute(call: SlotCall, listener: ExecutionListener) {
    this.#used = true;
    return this.#slot.execute({ ...call, batch: this.#post }, listener);
  }

  release(): void {
    if (this.#held) {
      this.#held = false;
      if (!this.#used) {
        throw new Error("a share of a slot was released without its call");
      }
      this.#release();
    }
  }
}
