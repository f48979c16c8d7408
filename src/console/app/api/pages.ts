/** Lists that are read page by page, as the API answers them. */

/** The options of each query of such a list. */
export const PAGES = {
  initialPageParam: "",
  getNextPageParam: ({ nextPageToken }: { readonly nextPageToken?: string }): string | undefined =>
    nextPageToken || undefined,
};

interface ReadPages {
  readonly state: { readonly data?: { readonly pages: readonly unknown[] } | undefined };
}

/** A list is read again as a whole: with more pages less often, so that it takes no more requests. */
export const pagesRefresh =
  (pageMs: number) =>
  ({ state }: ReadPages): number =>
    pageMs * Math.max(1, state.data?.pages.length ?? 0);
