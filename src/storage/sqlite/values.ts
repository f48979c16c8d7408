/** A list of values that is read from its beginning to its end. */
export class ValueReader {
  readonly #values: readonly unknown[];
  #at = 0;

  constructor(values: readonly unknown[]) {
    this.#values = values;
  }

  get ended(): boolean {
    return this.#at >= this.#values.length;
  }

  /** The next value, as which its writer knows it. Throws when there is none. */
  next<Value>(): Value {
    if (this.ended) {
      throw new Error("there are fewer values than were to be read");
    }
    const value = this.#values[this.#at] as Value;
    this.#at += 1;
    return value;
  }

  /** A count, and then so many. */
  list<One>(readOne: (values: ValueReader) => One): One[] {
    const list: One[] = [];
    for (let left = this.next<number>(); left > 0; left -= 1) {
      list.push(readOne(this));
    }
    return list;
  }
}
