/** A set that has one member or none nearly always, for which it needs no table. */
export class SmallSet<Member extends object> {
  #first: Member | undefined;
  #others: Set<Member> | undefined;

  get size(): number {
    return (this.#first === undefined ? 0 : 1) + (this.#others?.size ?? 0);
  }

  /** Adds one that is not in it. */
  add(member: Member): this {
    if (this.#first === undefined) {
      this.#first = member;
    } else {
      this.#others ??= new Set();
      this.#others.add(member);
    }
    return this;
  }

  /** True when it was in it. */
  delete(member: Member): boolean {
    if (this.#first === member) {
      this.#first = undefined;
      return true;
    }
    return this.#others?.delete(member) ?? false;
  }

  /** Calls `visit` for each; members may go meanwhile. */
  each(visit: (member: Member) => void): void {
    if (this.#first !== undefined) {
      visit(this.#first);
    }
    this.#others?.forEach(visit);
  }
}
