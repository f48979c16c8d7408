/** Reads of an organization's people. */
import { queryOptions } from "@tanstack/react-query";
import type { RoleJson } from "../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "./clients.ts";

/** The most that one call lists. */
const MAX_MEMBERS = 1_000;
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

export const roleName = (role: RoleJson | undefined): string =>
  role === "ROLE_ADMIN" ? "admin" : "member";
