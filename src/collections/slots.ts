/**
 * Collections for what comes and goes all the time.
 *
 * When V8 makes a new table for a `Map` or a `Set`, the old one points to it
 * and keeps its members. Once one old table has grown old, it keeps the next
 * alive at every small collection, and that the one after it: each of them
 * grows old too, with all that was under way when it was replaced. Here
 * members stand in a list that is never replaced, and what tables there are
 * hold numbers.
 */

/** A list whose places are used again. */
export class Slots<Value extends object> {
  readonly #values: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#values.length - this.#free.length;
  }

  get(slot: number): Value | undefined {
    return this.#values[slot];
  }

  /** Returns the slot in which the value now is. */
  add(value: Value): number {
    const slot = this.#free.pop() ?? this.#values.length;
    this.#values[slot] = value;
    return slot;
  }

  /** Takes the value out of a slot that has one. */
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

/** A map from short texts or numbers. */
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

  /** Gives a value to a key, which is then the last one, also when it had another before. */
  set(key: Key, value: Value): void {
    this.take(key);
    this.#slots.set(key, this.#values.add(value));
  }

  /** Takes the value of a key out. */
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
