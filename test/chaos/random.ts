/**
 * Random numbers that a seed repeats: the generator mulberry32 of Tommy
 * Ettinger (public domain), 32 bits of state, good enough to choose faults.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** True in this share of cases. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** One of them; undefined when there is none. */
  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.between(0, items.length - 1)];
  }
}
