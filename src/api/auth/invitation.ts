/** The methods of AuthService by which an invited person joins an organization. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type AcceptInvitationRequest,
  type AuthService,
  EndedCredentialsSchema,
} from "../../../gen/tessera/v1/auth_pb.js";
import { faultOfDisplayName } from "../../auth/names.ts";
import { digestCode, isCode } from "../../auth/one-time-codes.ts";
import { checkPassword, hashPassword } from "../../auth/passwords.ts";
import { type Problem, problem } from "../../errors.ts";
import type { Mailer } from "../../server/mail/mailer.ts";
import { tellOwner } from "../../server/mail/tell-owner.ts";
import { callerOf, deed } from "../../server/rpc/engine/caller.ts";
import type { InvitationRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { People, User } from "../../storage/accounts/people.ts";
import { toInvitationMessage } from "../organization/messages.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { refuse, violationsOf } from "../violations.ts";
import { type ProofOptions, provePassword } from "./prove-password.ts";
import { giveSession, startSession } from "./session.ts";
import { signInFailed } from "./sign-in-failure.ts";

export interface InvitationOptions extends ProofOptions {
  readonly accounts: ProofOptions["accounts"] &
    Pick<People, "findUser" | "findSession" | "openSession" | "closeSession" | "verifyEmail"> &
    Pick<Organizations, "findOrganization" | "findInvitation" | "acceptInvitation">;
  /** How long a person stays signed in. Default: 14 days. */
  readonly sessionLifetimeMs?: number;
  /** The platform's public URL, without a trailing slash. */
  readonly publicUrl: string;
  /** Undefined where no mail is sent. */
  readonly mailer: Mailer | undefined;
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
      const invitation = await find(invitationCode, ctx);
      const user = await accounts.findUser({ email: invitation.email });
      const setsPassword = user === undefined || takesOver(invitation, user);
      return { ...toInvitationMessage(invitation), setsPassword };
    },

    async acceptInvitation(req, ctx) {
      const invitation = await find(req.invitationCode, ctx);
      const { principal } = callerOf(ctx);
      const user = await accounts.findUser({ email: invitation.email });
      if (user !== undefined && takesOver(invitation, user)) {
        return joinTakingOver(options, { invitation, user, req }, ctx);
      }
      if (principal.kind === "session" && principal.email === invitation.email) {
        await joinSignedIn(options, invitation, ctx);
        const { organizationId, organization, role } = invitation;
        const others = principal.memberships.filter((one) => one.organizationId !== organizationId);
        const memberships = [...others, { organizationId, organization, role }];
        return toPrincipalMessage({ ...principal, memberships }, accounts);
      }
      return joinWithPassword(options, { invitation, user, req }, ctx);
    },
  };
}

/**
 * Whether a link proves the address of an account for the first time. Until
 * then somebody else may have made the account, and may know its password or
 * have sessions; so neither lets anybody join by this link.
 */
function takesOver({ mailed }: InvitationRecord, { emailVerified }: User): boolean {
  return mailed && !emailVerified;
}

/** Joins with an account that the person takes over: all that was in it ends, and it gets their password. */
async function joinTakingOver(
  options: InvitationOptions,
  { invitation, user, req }: Join,
  ctx: HandlerContext,
) {
  const { accounts, log, mailer, publicUrl } = options;
  const { email } = invitation;
  checkPassword(req.password);
  const passwordHash = await hashPassword(req.password);
  const { userId = "" } = user ?? {};
  const by = { name: email, id: userId, address: callerOf(ctx).address };
  const ended = await accounts.verifyEmail({
    ...deed(by, options),
    userId,
    way: "invitation",
    passwordHash,
  });
  if (ended === undefined) {
    // Another sign-in proved it a moment ago; that one has set what the account has now.
    throw signInFailed();
  }
  tellOwner({ mailer, log }, { email, ended, publicUrl });
  const answer = await join(options, { invitation, userId, passwordHash }, ctx);
  return { ...answer, endedCredentials: create(EndedCredentialsSchema, ended) };
}

interface Join {
  readonly invitation: InvitationRecord;
  /** The account of the invited address. */
  readonly user: User | undefined;
  readonly req: AcceptInvitationRequest;
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
  { invitation, user, req: { password, displayName } }: Join,
  ctx: HandlerContext,
) {
  const { email } = invitation;
  if (user !== undefined) {
    await provePassword(options, { email, password, find: async () => user }, ctx);
    const { userId, passwordHash } = user;
    return join(options, { invitation, userId, passwordHash }, ctx);
  }
  refuse(violationsOf({ display_name: faultOfDisplayName(displayName) }));
  checkPassword(password);
  const passwordHash = await hashPassword(password);
  const newUser = { email, displayName, passwordHash };
  return join(options, { invitation, userId: options.newId(), passwordHash, newUser }, ctx);
}

/** Accepts the invitation with a session. */
async function join(
  options: InvitationOptions,
  {
    invitation: { invitationId, email },
    userId,
    passwordHash,
    newUser,
  }: {
    readonly invitation: InvitationRecord;
    readonly userId: string;
    readonly passwordHash: string | undefined;
    readonly newUser?: Parameters<Organizations["acceptInvitation"]>[0]["newUser"] & object;
  },
  ctx: HandlerContext,
) {
  const { accounts } = options;
  const { value, session } = startSession(ctx, options);
  const { outcome } = await accounts.acceptInvitation({
    ...deed({ name: email, id: userId, address: callerOf(ctx).address }, options),
    invitationId,
    userId,
    ...(newUser === undefined ? { currentHash: passwordHash } : { newUser }),
    session,
  });
  switch (outcome) {
    case "joined":
      return giveSession(ctx, { ...options, passwordHash, value, session });
    case "user_exists":
    case "password_changed":
      throw signInFailed();
    case "not_found":
      throw notFound();
  }
}

/** The same error for an unknown, used, revoked or expired invitation. */
function notFound(): Problem {
  return problem(
    "INVITATION_NOT_FOUND",
    "this invitation is not valid: it works once and for 7 days; ask for another",
  );
}
