import { expect, it } from "vitest";
import { PAGES, pagesRefresh } from "../../src/console/app/api/pages.ts";

it("a list goes on with the token of its last page, and ends with a page that has none", () => {
  expect(PAGES.getNextPageParam({ nextPageToken: "second" })).toBe("second");
  expect(PAGES.getNextPageParam({ nextPageToken: "" })).toBeUndefined();
  expect(PAGES.getNextPageParam({})).toBeUndefined();
});

it("a list of several pages is read again less often", () => {
  const refresh = pagesRefresh(3_000);
  expect(refresh({ state: {} })).toBe(3_000);
  expect(refresh({ state: { data: { pages: [{}] } } })).toBe(3_000);
  expect(refresh({ state: { data: { pages: [{}, {}, {}, {}] } } })).toBe(12_000);
});
