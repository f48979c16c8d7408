/**
 * Changes a password. Somebody else may know the old one, so everything that
 * was obtained with it and could gain more access ends in the same transaction:
 * sessions, and approved command-line logins that wait to be redeemed. Personal
 * tokens are in use by programs; they end only on request.
 */
import type { Accounts } from "../../accounts/accounts.ts";
import type { PasswordChange } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { deletePersonalTokens } from "./delete-tokens.ts";
import { lockOrganization } from "./locks.ts";
import { MAX_AUDITED_IDS } from "./members.ts";
import { lockPassword } from "./users.ts";

export function* setPassword(
  parameters: Parameters<Accounts["setPassword"]>[0],
): Operation<PasswordChange | undefined> {
  const { userId, passwordHash, exceptSessionId = "", revokeTokens = false, nowMs } = parameters;
  const { currentHash } = parameters;
  const organizations = yield* query<{ organization_id: string }>(
    "SELECT organization_id FROM memberships WHERE user_id = ? ORDER BY organization_id",
    userId,
  );
  for (const { organization_id: organizationId } of organizations) {
    yield* lockOrganization(organizationId);
  }
  if (currentHash !== undefined && !(yield* lockPassword(userId, currentHash))) {
    return undefined;
  }
  const [user] = yield* query<{ email: string }>(
    "UPDATE users SET password_hash = ? WHERE user_id = ? RETURNING email",
    passwordHash,
    userId,
  );
  if (user === undefined) {
    return undefined;
  }
  const ended = yield* query(
    "DELETE FROM sessions WHERE user_id = ? AND session_id <> ? RETURNING session_id",
    userId,
    exceptSessionId,
  );
  const tokenIds: string[] = [];
  for (const { organization_id: organizationId } of organizations) {
    const key = [organizationId, userId] as const;
    yield* query("DELETE FROM login_codes WHERE organization_id = ? AND user_id = ?", ...key);
    yield* query("DELETE FROM device_logins WHERE organization_id = ? AND user_id = ?", ...key);
    const ids = revokeTokens ? yield* deletePersonalTokens(organizationId, { userId, nowMs }) : [];
    tokenIds.push(...ids);
    yield* record(parameters, organizationId, {
      action: "password.change",
      subjectId: userId,
      subject: user.email,
      ...(revokeTokens && {
        details: {
          personal_tokens_ended: String(ids.length),
          token_ids: ids.slice(0, MAX_AUDITED_IDS).join(" "),
        },
      }),
    });
  }
  yield* announce(
    nowMs,
    { kind: "user", id: userId },
    ...tokenIds.map((id) => ({ kind: "token", id }) as const),
  );
  return { endedSessions: ended.length, endedTokens: tokenIds.length };
}
