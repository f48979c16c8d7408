/** Reads of the audit log, page by page. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { organizations } from "../../api/clients.ts";
import { boundsIn, RANGES } from "../../ui/time-range.ts";
import type { AuditSearch } from "./audit-search.ts";

/** Events that are read at once; more come on demand. */
const MAX_EVENTS_PER_PAGE = 100;

/** A page, and the time from which events count: it is the same for all pages of a list. */
interface AuditPage {
  readonly pageToken: string;
  readonly timeFrom?: string;
}

const firstPage: AuditPage = { pageToken: "" };

export const auditOf = (organization: string, search: AuditSearch) => {
  const { range, from: _from, to: _to, ...chosen } = search;
  const bounds = boundsIn(search);
  /** A range that ends now begins where it did when the first page was read. */
  const startOf = (): string | undefined => {
    const startMs = bounds?.fromMs ?? (range && Date.now() - RANGES[range][1] * 1_000);
    return startMs === undefined ? undefined : new Date(startMs).toISOString();
  };
  return infiniteQueryOptions({
    queryKey: ["audit", organization, search],
    queryFn: async ({ pageParam, signal }) => {
      const timeFrom = pageParam.timeFrom ?? startOf();
      const read = await organizations.listAuditEvents(
        {
          ...{ organization, ...chosen, pageSize: MAX_EVENTS_PER_PAGE },
          pageToken: pageParam.pageToken,
          ...(timeFrom !== undefined && { timeFrom }),
          ...(bounds !== undefined && { timeBefore: new Date(bounds.toMs).toISOString() }),
        },
        { signal },
      );
      return { ...read, timeFrom };
    },
    initialPageParam: firstPage,
    getNextPageParam: ({ nextPageToken, timeFrom }): AuditPage | undefined =>
      nextPageToken
        ? { pageToken: nextPageToken, ...(timeFrom !== undefined && { timeFrom }) }
        : undefined,
  });
};
