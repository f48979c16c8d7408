/** Reads of the platform for its operators. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { operator } from "./clients.ts";
import { PAGES } from "./pages.ts";

/** How often nodes are read again: they send a heartbeat every 3 s. */
const REFRESH_MS = 5_000;

/** How often the platform is read again, with all that is set. */
const PLATFORM_REFRESH_MS = 15_000;

/** Organizations that are read at once; more come on demand. */
const MAX_ORGANIZATIONS_PER_PAGE = 100;

export const nodes = queryOptions({
  queryKey: ["nodes"],
  queryFn: ({ signal }) => operator.listNodes({}, { signal }),
  refetchInterval: REFRESH_MS,
});

export const platform = queryOptions({
  queryKey: ["platform"],
  queryFn: ({ signal }) => operator.getPlatform({}, { signal }),
  refetchInterval: PLATFORM_REFRESH_MS,
});

export const allOrganizations = infiniteQueryOptions({
  queryKey: ["all-organizations"],
  queryFn: ({ pageParam, signal }) =>
    operator.listAllOrganizations(
      { pageSize: MAX_ORGANIZATIONS_PER_PAGE, pageToken: pageParam },
      { signal },
    ),
  ...PAGES,
});
