/**
 * Invites a person: stores the invitation, and brings its link to them.
 *
 * With a mail server the link goes by mail alone, so that it proves the
 * address. Without one it is shown to who invites, in organizations where the
 * operator allowed that; elsewhere only if there is an account, because such a
 * link lets in nobody but who can use the account.
 *
 * A mail is sent after the invitation is stored. When that fails, the
 * invitation stays: the mail may arrive nevertheless, and inviting again
 * replaces the invitation and sends another.
 */
import type { HandlerContext } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type { InviteMemberRequest } from "../../../gen/tessera/v1/organization_pb.js";
import type { FailureLimiter } from "../../auth/failures.ts";
import { checkMadeByPerson } from "../../auth/grants.ts";
import { faultOfEmail, normalizeEmail } from "../../auth/names.ts";
import { createCode, digestCode } from "../../auth/one-time-codes.ts";
import { type Problem, problem } from "../../errors.ts";
import { invitationMail } from "../../server/mail/letter.ts";
import type { Mailer } from "../../server/mail/mailer.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { InvitationRecord, Organizations } from "../../storage/accounts/organizations.ts";
import { refuse, violationsOf } from "../violations.ts";
import { roleOf, toInvitationMessage } from "./messages.ts";

/** Open invitations of an organization. */
export const MAX_OPEN_INVITATIONS = 1_000;
/** How long an invitation is valid. */
const INVITATION_LIFETIME_MS = 7 * 24 * 3_600_000;

export interface InviteOptions extends Sources {
  readonly accounts: Pick<Organizations, "invite">;
  /** The platform's public URL, without a trailing slash. */
  readonly publicUrl: string;
  /** Undefined where no mail is sent. */
  readonly mailer: Mailer | undefined;
  /** Limits mails, by organization and by person. */
  readonly mailLimiter: FailureLimiter;
  readonly log: FastifyBaseLogger;
}

/** The handler of InviteMember. */
export function inviteHandler(options: InviteOptions) {
  const { accounts, now, newId, publicUrl, mailer } = options;
  return async (req: InviteMemberRequest, ctx: HandlerContext) => {
    const member = memberOf(ctx);
    const { principal, organizationId, by } = member;
    checkMadeByPerson(principal, "invite people");
    const email = normalizeEmail(req.email);
    refuse(violationsOf({ email: faultOfEmail(email) }));
    if (mailer !== undefined) {
      checkMails(options, member);
    }
    const code = createCode();
    const invited = await accounts.invite({
      ...deed(by, options),
      organizationId,
      invitationId: newId(),
      digest: digestCode(code),
      email,
      role: roleOf(req.role),
      expiresAtMs: now() + INVITATION_LIFETIME_MS,
      mailed: mailer !== undefined,
      limit: MAX_OPEN_INVITATIONS,
    });
    if (invited.outcome !== "invited") {
      throw refusal(invited.outcome, { email, organization: member.organization });
    }
    const invitation = toInvitationMessage(invited.invitation);
    // A fragment keeps the code out of the logs of servers and proxies.
    const url = `${publicUrl}/invitation#code=${code}`;
    if (mailer === undefined) {
      return { invitation, url };
    }
    await deliver(options, mailer, { invitation: invited.invitation, url });
    return { invitation, mailed: true };
  };
}

/** Counts a mail of an organization and of a person. Errors: RATE_LIMITED. */
function checkMails({ mailLimiter }: InviteOptions, { organizationId, userId }: Member): void {
  const keys = [`organization ${organizationId}`, `person ${userId}`];
  for (const key of keys) {
    mailLimiter.check(key);
  }
  for (const key of keys) {
    mailLimiter.fail(key);
  }
}

async function deliver(
  { log }: InviteOptions,
  mailer: Mailer,
  { invitation, url }: { readonly invitation: InvitationRecord; readonly url: string },
): Promise<void> {
  const { createdBy: invitedBy, invitationId, email } = invitation;
  try {
    await mailer.send(invitationMail({ ...invitation, invitedBy, url }));
  } catch (err) {
    log.warn({ err, invitationId }, "an invitation could not be sent by mail");
    throw problem(
      "MAIL_FAILED",
      `the mail to ${email} could not be sent; the invitation is kept: invite them again to send another mail, or withdraw it. The server's log says why`,
      { cause: err },
    );
  }
}

function refusal(
  outcome: "is_member" | "limit" | "links_disabled" | "signed_out",
  { email, organization }: { readonly email: string; readonly organization: string },
): Problem {
  switch (outcome) {
    case "is_member":
      return problem("MEMBER_EXISTS", `${email} is a member of ${organization} already`);
    case "limit":
      return problem(
        "LIMIT_REACHED",
        `${organization} has ${MAX_OPEN_INVITATIONS} open invitations: withdraw some first`,
      );
    case "signed_out":
      return problem("TOKEN_INVALID", "your session or token has ended: sign in again");
    case "links_disabled":
      return problem(
        "INVITATION_LINKS_DISABLED",
        `${email} has no account yet, this platform sends no mail, and admins of ${organization} may not see links of invitations: ask the operator to set --smtp-url, or to run tessera admin invitation-links enable --organization ${organization}`,
      );
  }
}
