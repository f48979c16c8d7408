/**
 * Random numbers that are the same in every run: xorshift32 (Marsaglia,
 * "Xorshift RNGs", Journal of Statistical Software 8, 2003).
 */
export class Random {
  #state: number;

  /** @param seed Any integer but 0. */
  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** Uniform, from 0 up to but not including 1. */
  next(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) / 2 ** 32;
  }

  /** Uniform between `low` and `high`. */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** Normal with mean 0 and variance 1, by the method of Box and Muller. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** Puts a list into random order, in place. */
  shuffle(list: unknown[]): void {
    for (let i = list.length - 1; i > 0; i--) {
      const j = Math.floor(this.next() * (i + 1));
      [list[i], list[j]] = [list[j], list[i]];
    }
  }
}
