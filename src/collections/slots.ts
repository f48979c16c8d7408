/**
 * Slot collections, for members that come and go all the time.
 *
 * When V8 makes a new table for a `Map` or a `Set`, the old table points to
 * it and keeps its members. Once one table has reached the old generation, it
 * keeps the next alive at every minor collection, and that one the table
 * after it: each of them grows old too, with all that was under way when it
 * was replaced. Here a list that is never replaced holds the members, and the
 * tables hold only numbers.
 */

/** A list that reuses the slots of removed values. */
export class Slots<Value extends object> {
  readonly #values: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#values.length - this.#free.length;
  }

  get(slot: number): Value | undefined {
    return this.#values[slot];
  }

  /** Adds a value and returns its slot. */
  add(value: Value): number {
    const slot = this.#free.pop() ?? this.#values.length;
    this.#values[slot] = value;
    return slot;
  }

  /** Removes and returns the value of a slot that has one. */
  take(slot: number): Value | undefined {
    const value = this.#values[slot];
    this.#values[slot] = undefined;
    this.#free.push(slot);
    return value;
  }

  some(test: (value: Value) => boolean): boolean {
    return this.#values.some((value) => value !== undefined && test(value));
  }

  /** In no order. */
  values(): Value[] {
    return this.#values.filter((value) => value !== undefined);
  }
}

/** A map from short texts or numbers to objects. */
export class SlotMap<Key extends string | number, Value extends object> {
  readonly #slots = new Map<Key, number>();
  readonly #values = new Slots<Value>();

  get size(): number {
    return this.#slots.size;
  }

  has(key: Key): boolean {
    return this.#slots.has(key);
  }

  get(key: Key): Value | undefined {
    const slot = this.#slots.get(key);
    return slot === undefined ? undefined : this.#values.get(slot);
  }

  /** Sets the value of a key, which moves to the end even if it had one before. */
  set(key: Key, value: Value): void {
    this.take(key);
    this.#slots.set(key, this.#values.add(value));
  }

  /** Removes a key and returns its value. */
  take(key: Key): Value | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      return undefined;
    }
    this.#slots.delete(key);
    return this.#values.take(slot);
  }

  /** In the order in which they were set. */
  keys(): MapIterator<Key> {
    return this.#slots.keys();
  }

  /** In no order. */
  values(): Value[] {
    return this.#values.values();
  }
}
