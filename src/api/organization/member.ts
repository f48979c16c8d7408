/** The methods of OrganizationService about members and invitations. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { checkMadeByPerson } from "../../auth/grants.ts";
import { type Problem, problem } from "../../errors.ts";
import { callerOf, deed, type Member, memberIn, memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import { isTaskId } from "../../tasks/id.ts";
import { PageTokens } from "../page.ts";
import { type InviteOptions, inviteHandler, MAX_OPEN_INVITATIONS } from "./invite.ts";
import { roleOf, toInvitationMessage, toMemberMessage } from "./messages.ts";

type MemberMethods =
  | "listMembers"
  | "inviteMember"
  | "listInvitations"
  | "deleteInvitation"
  | "updateMember"
  | "removeMember"
  | "leaveOrganization";

export interface MemberOptions extends InviteOptions {
  readonly accounts: InviteOptions["accounts"] &
    Pick<
      Organizations,
      "listMembers" | "changeRole" | "removeMember" | "listInvitations" | "deleteInvitation"
    >;
}

/** The handlers of members and invitations. */
export function memberHandlers(
  options: MemberOptions,
): Pick<ServiceImpl<typeof OrganizationService>, MemberMethods> {
  const { accounts, now } = options;

  const remove = async (
    { organizationId, organization, by }: Member,
    { userId, left }: { readonly userId: string; readonly left: boolean },
  ) => {
    const { outcome } = isTaskId(userId)
      ? await accounts.removeMember({ ...deed(by, options), organizationId, userId, left })
      : { outcome: "not_found" as const };
    if (outcome === "not_found") {
      throw memberNotFound(userId);
    }
    if (outcome === "last_admin") {
      throw lastAdmin(organization);
    }
    return {};
  };

  return {
    async listMembers(req, ctx) {
      const { organizationId } = memberOf(ctx);
      const tokens = new PageTokens({ method: "ListMembers", filter: [organizationId] });
      const page = await accounts.listMembers({ ...tokens.query(req), organizationId });
      return { members: page.items.map(toMemberMessage), nextPageToken: tokens.after(page.next) };
    },

    inviteMember: inviteHandler(options),

    async listInvitations(_req, ctx) {
      const { organizationId } = memberOf(ctx);
      const query = { organizationId, nowMs: now(), limit: MAX_OPEN_INVITATIONS };
      return { invitations: (await accounts.listInvitations(query)).map(toInvitationMessage) };
    },

    async deleteInvitation({ invitationId }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const deleted =
        isTaskId(invitationId) &&
        (await accounts.deleteInvitation({ ...deed(by, options), organizationId, invitationId }));
      if (!deleted) {
        throw problem(
          "INVITATION_NOT_FOUND",
          `invitation ${JSON.stringify(invitationId)} does not exist: it may have been used, withdrawn or expired`,
        );
      }
      return {};
    },

    async updateMember({ userId, role }, ctx) {
      const { principal, organizationId, organization, by } = memberOf(ctx);
      if (roleOf(role) === "admin") {
        checkMadeByPerson(principal, "make people admins");
      }
      const changed = isTaskId(userId)
        ? await accounts.changeRole({
            ...deed(by, options),
            organizationId,
            userId,
            role: roleOf(role),
          })
        : { outcome: "not_found" as const };
      switch (changed.outcome) {
        case "changed":
          return toMemberMessage(changed.member);
        case "not_found":
          throw memberNotFound(userId);
        case "last_admin":
          throw lastAdmin(organization);
      }
    },

    removeMember({ userId }, ctx) {
      return remove(memberOf(ctx), { userId, left: false });
    },

    leaveOrganization({ organization }, ctx) {
      const member = memberIn(callerOf(ctx), organization);
      return remove(member, { userId: member.userId ?? "", left: true });
    },
  };
}

function memberNotFound(userId: string): Problem {
  return problem("MEMBER_NOT_FOUND", `member ${JSON.stringify(userId)} does not exist`);
}

function lastAdmin(organization: string): Problem {
  return problem(
    "LAST_ADMIN",
    `this is the last admin of ${organization}, and somebody has to be: make another member an admin first`,
  );
}
