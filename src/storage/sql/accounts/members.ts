/** Reads, changes and removes members of organizations. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { MemberRecord, Organizations } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import type { Role } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { deletePersonalTokens } from "./delete-tokens.ts";
import { lockOrganization } from "./locks.ts";
import { toPage } from "./rows.ts";

/** Ids per audit event. */
export const MAX_AUDITED_IDS = 100;

interface MemberRow {
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string;
  readonly role: Role;
  readonly joined_at_ms: number;
}

const SELECT = `SELECT m.user_id, m.email, u.display_name, m.role, m.joined_at_ms
  FROM memberships m JOIN users u ON u.user_id = m.user_id WHERE m.organization_id = ?`;

function toMember(row: MemberRow): MemberRecord {
  return {
    userId: row.user_id,
    email: row.email,
    displayName: row.display_name,
    role: row.role,
    joinedAtMs: row.joined_at_ms,
  };
}

export function* findMember(
  organizationId: string,
  userId: string,
): Operation<MemberRecord | undefined> {
  const [row] = yield* query<MemberRow>(`${SELECT} AND m.user_id = ?`, organizationId, userId);
  return row && toMember(row);
}

export function* listMembers({
  organizationId,
  limit,
  after = "",
}: Parameters<Accounts["listMembers"]>[0]): Operation<Page<MemberRecord>> {
  const rows = yield* query<MemberRow>(
    `${SELECT} AND m.email > ? ORDER BY m.email LIMIT ?`,
    organizationId,
    after,
    limit + 1,
  );
  return toPage(rows.map(toMember), limit, ({ email }) => email);
}

/** Whether nobody else is an admin. Requires the organization's lock. */
function* isLastAdmin(organizationId: string, { userId, role }: MemberRecord): Operation<boolean> {
  if (role !== "admin") {
    return false;
  }
  const others = yield* query(
    `SELECT user_id FROM memberships
     WHERE organization_id = ? AND role = 'admin' AND user_id <> ? LIMIT 1`,
    organizationId,
    userId,
  );
  return others.length === 0;
}

export function* changeRole(
  parameters: Parameters<Accounts["changeRole"]>[0],
): Operation<Awaited<ReturnType<Organizations["changeRole"]>>> {
  const { organizationId, userId, role, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findMember(organizationId, userId);
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (role !== "admin" && (yield* isLastAdmin(organizationId, before))) {
    return { outcome: "last_admin" };
  }
  yield* query(
    "UPDATE memberships SET role = ? WHERE organization_id = ? AND user_id = ?",
    role,
    organizationId,
    userId,
  );
  yield* record(parameters, organizationId, {
    action: "member.update",
    subjectId: userId,
    subject: before.email,
    details: { role, previous_role: before.role },
  });
  yield* announce(nowMs, { kind: "user", id: userId });
  return { outcome: "changed", member: { ...before, role } };
}

export function* removeMember(
  parameters: Parameters<Accounts["removeMember"]>[0],
): Operation<Awaited<ReturnType<Organizations["removeMember"]>>> {
  const { organizationId, userId, left, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const member = yield* findMember(organizationId, userId);
  if (member === undefined) {
    return { outcome: "not_found" };
  }
  if (yield* isLastAdmin(organizationId, member)) {
    return { outcome: "last_admin" };
  }
  const key = [organizationId, userId] as const;
  yield* query("DELETE FROM memberships WHERE organization_id = ? AND user_id = ?", ...key);
  // A pending login would still create a token if the person joined again in
  // time.
  yield* query("DELETE FROM login_codes WHERE organization_id = ? AND user_id = ?", ...key);
  yield* query("DELETE FROM device_logins WHERE organization_id = ? AND user_id = ?", ...key);
  const tokenIds = yield* deletePersonalTokens(organizationId, parameters);
  yield* record(parameters, organizationId, {
    action: left ? "member.leave" : "member.remove",
    subjectId: userId,
    subject: member.email,
    details: {
      role: member.role,
      personal_tokens_ended: String(tokenIds.length),
      token_ids: tokenIds.slice(0, MAX_AUDITED_IDS).join(" "),
    },
  });
  yield* announce(
    nowMs,
    { kind: "user", id: userId },
    ...tokenIds.map((id) => ({ kind: "token", id }) as const),
  );
  return { outcome: "removed" };
}
