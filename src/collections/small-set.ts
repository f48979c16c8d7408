/** A set for the case of at most one member, which needs no table. */
export class SmallSet<Member extends object> {
  #first: Member | undefined;
  #others: Set<Member> | undefined;

  get size(): number {
    return (this.#first === undefined ? 0 : 1) + (this.#others?.size ?? 0);
  }

  /** Adds a member that is not in the set yet. */
  add(member: Member): this {
    if (this.#first === undefined) {
      this.#first = member;
    } else {
      this.#others ??= new Set();
      this.#others.add(member);
    }
    return this;
  }

  /** Returns true if the member was in the set. */
  delete(member: Member): boolean {
    if (this.#first === member) {
      this.#first = undefined;
      return true;
    }
    return this.#others?.delete(member) ?? false;
  }

  /** Calls `visit` for each member; members may be deleted meanwhile. */
  each(visit: (member: Member) => void): void {
    if (this.#first !== undefined) {
      visit(this.#first);
    }
    this.#others?.forEach(visit);
  }
}
