/** One page of a list; `next` is the cursor of the page after it, undefined on the last. */
export interface Page<Item> {
  readonly items: Item[];
  readonly next: string | undefined;
}

export interface PageQuery {
  readonly limit: number;
  /** The cursor: `next` of the previous page. */
  readonly after?: string;
}
