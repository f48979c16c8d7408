/** The methods of AuthService by which an invited person joins an organization. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AcceptInvitationRequest, AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { digestCode, isCode } from "../../../auth/one-time-codes.ts";
import { checkPassword, hashPassword } from "../../../auth/passwords.ts";
import { newSession } from "../../../auth/sessions.ts";
import { type Problem, problem } from "../../../errors.ts";
import type { InvitationRecord, Organizations } from "../../../storage/accounts/organizations.ts";
import type { People } from "../../../storage/accounts/people.ts";
import { callerOf, deed } from "../engine/caller.ts";
import { toInvitationMessage } from "../organization/messages.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { type ProofOptions, provePassword } from "./prove-password.ts";
import { giveSession } from "./session.ts";
import { signInFailed } from "./sign-in-failure.ts";

export interface InvitationOptions extends ProofOptions {
  readonly accounts: ProofOptions["accounts"] &
    Pick<People, "findUser" | "findSession" | "openSession" | "closeSession"> &
    Pick<Organizations, "findOrganization" | "findInvitation" | "acceptInvitation">;
  /** How long a person stays signed in. Default: 14 days. */
  readonly sessionLifetimeMs?: number;
}

/** The handlers of invitations. */
export function invitationHandlers(
  options: InvitationOptions,
): Pick<ServiceImpl<typeof AuthService>, "getInvitation" | "acceptInvitation"> {
  const { accounts, limiter, now } = options;

  /** The open invitation of a link. Errors: INVITATION_NOT_FOUND, RATE_LIMITED. */
  const find = async (code: string, ctx: HandlerContext): Promise<InvitationRecord> => {
    const attempt = async () =>
      isCode(code)
        ? accounts.findInvitation({ digest: digestCode(code), nowMs: now() })
        : undefined;
    const { address } = callerOf(ctx);
    const found = await limiter.attempt(address, attempt, (found) => found === undefined);
    if (found === undefined) {
      throw notFound();
    }
    return found;
  };

  return {
    async getInvitation({ invitationCode }, ctx) {
      return toInvitationMessage(await find(invitationCode, ctx));
    },

    async acceptInvitation(req, ctx) {
      const invitation = await find(req.invitationCode, ctx);
      const { principal } = callerOf(ctx);
      if (principal.kind === "session" && principal.email === invitation.email) {
        await joinSignedIn(options, invitation, ctx);
        const { organizationId, organization, role } = invitation;
        const others = principal.memberships.filter((one) => one.organizationId !== organizationId);
        const memberships = [...others, { organizationId, organization, role }];
        return toPrincipalMessage({ ...principal, memberships }, accounts);
      }
      return joinWithPassword(options, { invitation, req }, ctx);
    },
  };
}

async function joinSignedIn(
  options: InvitationOptions,
  { invitationId }: InvitationRecord,
  ctx: HandlerContext,
): Promise<void> {
  const { principal, address } = callerOf(ctx);
  if (principal.kind !== "session") {
    throw signInFailed();
  }
  const { userId, email } = principal;
  const by = { name: email, id: userId, address };
  const joined = await options.accounts.acceptInvitation({
    ...deed(by, options),
    invitationId,
    userId,
  });
  if (joined.outcome !== "joined") {
    throw notFound();
  }
}

async function joinWithPassword(
  options: InvitationOptions,
  {
    invitation: { invitationId, email },
    req: { password, displayName },
  }: { readonly invitation: InvitationRecord; readonly req: AcceptInvitationRequest },
  ctx: HandlerContext,
) {
  const { accounts, now, newId } = options;
  const { address } = callerOf(ctx);
  const user = await accounts.findUser({ email });
  if (user === undefined) {
    checkPassword(password);
  } else {
    await provePassword(options, { email, password, find: async () => user }, ctx);
  }
  const userId = user?.userId ?? newId();
  const { value, session } = newSession(now(), options.sessionLifetimeMs);
  const passwordHash = user === undefined ? await hashPassword(password) : user.passwordHash;
  const { outcome } = await accounts.acceptInvitation({
    ...deed({ name: email, id: userId, address }, options),
    invitationId,
    userId,
    ...(user === undefined && { newUser: { email, displayName, passwordHash } }),
    session,
  });
  if (outcome === "user_exists") {
    throw signInFailed();
  }
  if (outcome === "not_found") {
    throw notFound();
  }
  return giveSession(ctx, { ...options, passwordHash, value, session });
}

/** The same error for an unknown, used, revoked or expired invitation. */
function notFound(): Problem {
  return problem(
    "INVITATION_NOT_FOUND",
    "this invitation is not valid: it works once and for 7 days; ask for another",
  );
}
