/**
 * Records that a person has proved their e-mail address.
 *
 * Before that, anyone who saw the link of an invitation may have made the
 * account and may use it. So the first proof ends whatever that person has or
 * has given away: the password, sessions, pending logins, personal tokens, and
 * the organization tokens and open invitations that the account made. The
 * account's memberships stay: they give nothing to who cannot use the account,
 * and without them its owner would have to be invited again.
 *
 * The person's row is updated before their sessions are deleted, and
 * `lockPassword` updates it too: a person who has just proved the old password
 * either opens a session that is deleted here, or is refused.
 */
import type { Accounts } from "../../accounts/accounts.ts";
import type { EndedCredentials, People } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { deleteOrganizationTokensOf, deletePersonalTokens } from "./delete-tokens.ts";
import { lockOrganization } from "./locks.ts";
import { MAX_AUDITED_IDS } from "./members.ts";

export function* verifyEmail(
  parameters: Parameters<Accounts["verifyEmail"]>[0],
): Operation<Awaited<ReturnType<People["verifyEmail"]>>> {
  const { userId, way, passwordHash, nowMs } = parameters;
  const organizations = yield* lockOrganizationsOf(userId);
  const [before] = yield* query<{ password_hash: string | null }>(
    "SELECT password_hash FROM users WHERE user_id = ?",
    userId,
  );
  const [user] = yield* query<{ email: string }>(
    `UPDATE users SET email_verified = 1, password_hash = ?
     WHERE user_id = ? AND email_verified = 0 RETURNING email`,
    passwordHash,
    userId,
  );
  if (user === undefined) {
    return undefined;
  }
  const sessions = yield* query(
    "DELETE FROM sessions WHERE user_id = ? RETURNING session_id",
    userId,
  );
  const ended = { tokenIds: [] as string[], personal: 0, invitations: 0 };
  for (const { organization_id: organizationId } of organizations) {
    const there = yield* endIn(organizationId, { userId, email: user.email, nowMs });
    ended.tokenIds.push(...there.personal, ...there.others);
    ended.personal += there.personal.length;
    ended.invitations += there.invitations;
    yield* record(parameters, organizationId, {
      action: "email.verify",
      subjectId: userId,
      subject: user.email,
      details: {
        way,
        password_ended: String(Boolean(before?.password_hash)),
        sessions_ended: String(sessions.length),
        personal_tokens_ended: String(there.personal.length),
        organization_tokens_ended: String(there.others.length),
        invitations_ended: String(there.invitations),
        token_ids: [...there.personal, ...there.others].slice(0, MAX_AUDITED_IDS).join(" "),
      },
    });
  }
  yield* announce(
    nowMs,
    { kind: "user", id: userId },
    ...ended.tokenIds.map((id) => ({ kind: "token", id }) as const),
  );
  return summary(before?.password_hash, sessions.length, ended);
}

function summary(
  passwordHash: string | null | undefined,
  sessions: number,
  ended: {
    readonly tokenIds: readonly string[];
    readonly personal: number;
    readonly invitations: number;
  },
): EndedCredentials {
  return {
    password: Boolean(passwordHash),
    sessions,
    personalTokens: ended.personal,
    organizationTokens: ended.tokenIds.length - ended.personal,
    invitations: ended.invitations,
  };
}

/** Locks the organizations that a person belongs to or has made tokens in, by id. */
function* lockOrganizationsOf(
  userId: string,
): Operation<readonly { readonly organization_id: string }[]> {
  const organizations = yield* query<{ organization_id: string }>(
    `SELECT organization_id FROM memberships WHERE user_id = ?
     UNION SELECT organization_id FROM tokens WHERE user_id = ? ORDER BY organization_id`,
    userId,
    userId,
  );
  for (const { organization_id: organizationId } of organizations) {
    yield* lockOrganization(organizationId);
  }
  return organizations;
}

/** Ends what the account has and has given away in one organization. Requires its lock. */
function* endIn(
  organizationId: string,
  person: { readonly userId: string; readonly email: string; readonly nowMs: number },
) {
  const { userId, email } = person;
  const key = [organizationId, userId] as const;
  yield* query("DELETE FROM login_codes WHERE organization_id = ? AND user_id = ?", ...key);
  yield* query("DELETE FROM device_logins WHERE organization_id = ? AND user_id = ?", ...key);
  const invitations = yield* query(
    `DELETE FROM invitations WHERE organization_id = ? AND created_by = ? RETURNING invitation_id`,
    organizationId,
    email,
  );
  const personal = yield* deletePersonalTokens(organizationId, person);
  const others = yield* deleteOrganizationTokensOf(organizationId, person);
  return { personal, others, invitations: invitations.length };
}
