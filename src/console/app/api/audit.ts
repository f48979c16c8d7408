/** Reads of an organization's audit log. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
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

/** Events of a deployment that are looked through for its last changes, and for the values before. */
const MAX_HISTORY_EVENTS = 50;

/** The newest changes of a deployment; `version` is its version, with which they are read again. */
export const historyOf = (organization: string, deployment: string, version: number) =>
  queryOptions({
    queryKey: ["history", organization, deployment, version],
    queryFn: async ({ signal }) => {
      const chosen = { subject: deployment, action: "deployment" };
      const request = { organization, ...chosen, pageSize: MAX_HISTORY_EVENTS };
      return (await organizations.listAuditEvents(request, { signal })).auditEvents ?? [];
    },
  });

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
