/**
 * A bound of the whole node, of which one organization has at most three quarters: whatever it
 * does, there is room for others. What is of nobody known has three quarters at most, too.
 */

/** What one organization may take of a bound of its node. */
export const MAX_ORGANIZATION_SHARE = 0.75;

export class SharedBound {
  readonly #max: number;
  readonly #maxOfOne: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();

  /** @param share of one organization. Default: three quarters. */
  constructor(max: number, share = MAX_ORGANIZATION_SHARE) {
    this.#max = max;
    this.#maxOfOne = Math.ceil(max * share);
  }

  /** Takes room for an organization. False, and then none is taken, where it or the node has none. */
  take(organizationId: string, amount = 1): boolean {
    const own = this.takenBy(organizationId) + amount;
    if (this.#taken + amount > this.#max || own > this.#maxOfOne) {
      return false;
    }
    this.#taken += amount;
    this.#takenBy.set(organizationId, own);
    return true;
  }

  /** Gives room back. */
  give(organizationId: string, amount = 1): void {
    const left = this.takenBy(organizationId) - amount;
    this.#taken -= amount;
    if (left === 0) {
      this.#takenBy.delete(organizationId);
    } else {
      this.#takenBy.set(organizationId, left);
    }
  }

  /** The organizations that have no room for more of their own. */
  get full(): readonly string[] {
    return [...this.#takenBy].flatMap(([id, taken]) => (taken >= this.#maxOfOne ? [id] : []));
  }

  takenBy(organizationId: string): number {
    return this.#takenBy.get(organizationId) ?? 0;
  }

  /** What all have taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * For the message to one who has found no room for an amount: whether their own organization has
   * its share. What others have is told to nobody.
   */
  refusal(organizationId: string, amount = 1): string {
    const isOwn = this.takenBy(organizationId) + amount > this.#maxOfOne;
    return `${isOwn ? "the organization has its share" : "all are taken"}: ${this.rule}`;
  }

  /** A part of it, such as `at most 150 of the 200 are one organization's`. */
  get rule(): string {
    return `at most ${this.#maxOfOne} of the ${this.#max} are one organization's`;
  }
}
