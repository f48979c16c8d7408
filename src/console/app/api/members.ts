/** Reads of an organization's people and of its audit log. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { RoleJson } from "../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "./clients.ts";

/** The most that one call lists. */
const MAX_MEMBERS = 1_000;
/** Events that are read at once; more come on demand. */
const MAX_EVENTS_PER_PAGE = 100;

export const membersOf = (organization: string) =>
  queryOptions({
    queryKey: ["members", organization],
    queryFn: async ({ signal }) => {
      const request = { organization, pageSize: MAX_MEMBERS };
      return (await organizations.listMembers(request, { signal })).members ?? [];
    },
  });

export const invitationsOf = (organization: string) =>
  queryOptions({
    queryKey: ["invitations", organization],
    queryFn: async ({ signal }) =>
      (await organizations.listInvitations({ organization }, { signal })).invitations ?? [],
  });

export const auditOf = (organization: string) =>
  infiniteQueryOptions({
    queryKey: ["audit", organization],
    queryFn: ({ pageParam, signal }) =>
      organizations.listAuditEvents(
        { organization, pageSize: MAX_EVENTS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });

export const roleName = (role: RoleJson | undefined): string =>
  role === "ROLE_ADMIN" ? "admin" : "member";
