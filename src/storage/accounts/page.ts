/** A page of a list: `next` gives the page after it, and is undefined for the last. */
export interface Page<Item> {
  readonly items: Item[];
  readonly next: string | undefined;
}

export interface PageQuery {
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string;
}
