/** Reads of an organization's audit log. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { organizations } from "./clients.ts";

/** Events that are read at once; more come on demand. */
const MAX_EVENTS_PER_PAGE = 100;

/** Which events are listed, as the address has it. */
export interface AuditSearch {
  readonly actor?: string;
  readonly action?: string;
  readonly subject?: string;
}

/** Leaves out what no filter has. */
export function readAuditSearch(given: Record<string, unknown>): AuditSearch {
  const { actor, action, subject } = given;
  const text = (value: unknown): value is string => typeof value === "string" && value !== "";
  return {
    ...(text(actor) && { actor }),
    ...(text(action) && { action }),
    ...(text(subject) && { subject }),
  };
}

export const auditOf = (organization: string, search: AuditSearch) =>
  infiniteQueryOptions({
    queryKey: ["audit", organization, search],
    queryFn: ({ pageParam, signal }) =>
      organizations.listAuditEvents(
        { organization, ...search, pageSize: MAX_EVENTS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
