/** Creates, lists, deletes and accepts invitations. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { InvitationRecord, Organizations } from "../../accounts/organizations.ts";
import type { Role } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { isCredentialThere } from "./acting-credential.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { lockOrganization } from "./locks.ts";
import { addMember } from "./organizations.ts";
import { insertSession } from "./sessions.ts";
import { findUser, insertUser, lockPassword } from "./users.ts";

interface InvitationRow {
  readonly invitation_id: string;
  readonly organization_id: string;
  readonly organization: string;
  readonly email: string;
  readonly role: Role;
  readonly created_by: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
  readonly mailed: number;
}

const SELECT = `SELECT i.invitation_id, i.organization_id, o.name AS organization, i.email, i.role,
    i.created_by, i.created_at_ms, i.expires_at_ms, i.mailed
  FROM invitations i JOIN organizations o ON o.organization_id = i.organization_id`;

function toInvitation(row: InvitationRow): InvitationRecord {
  return {
    invitationId: row.invitation_id,
    organizationId: row.organization_id,
    organization: row.organization,
    email: row.email,
    role: row.role,
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    mailed: row.mailed === 1,
  };
}

export function* invite(
  parameters: Parameters<Accounts["invite"]>[0],
): Operation<Awaited<ReturnType<Organizations["invite"]>>> {
  const {
    organizationId,
    invitationId,
    email,
    role,
    expiresAtMs,
    mailed = false,
    nowMs,
    by,
  } = parameters;
  const organization = yield* lockOrganization(organizationId);
  if (organization === undefined) {
    throw new Error(`somebody was invited into organization ${organizationId}, which is gone`);
  }
  if (!(yield* isCredentialThere(parameters, organizationId))) {
    return { outcome: "signed_out" };
  }
  const members = yield* query(
    "SELECT user_id FROM memberships WHERE organization_id = ? AND email = ?",
    organizationId,
    email,
  );
  if (members.length > 0) {
    return { outcome: "is_member" };
  }
  // Who sees the link could otherwise make the account of a person who was never here.
  const isShown = mailed || organization.invitationLinksEnabled;
  if (!isShown && (yield* findUser({ email })) === undefined) {
    return { outcome: "links_disabled" };
  }
  const [open] = yield* query<{ count: number }>(
    `SELECT count(*) AS count FROM invitations
     WHERE organization_id = ? AND expires_at_ms > ? AND email <> ?`,
    organizationId,
    nowMs,
    email,
  );
  if ((open?.count ?? 0) >= parameters.limit) {
    return { outcome: "limit" };
  }
  yield* query(
    "DELETE FROM invitations WHERE organization_id = ? AND email = ?",
    organizationId,
    email,
  );
  yield* query(
    `INSERT INTO invitations (organization_id, invitation_id, digest, email, role, created_by,
       created_at_ms, expires_at_ms, mailed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    organizationId,
    invitationId,
    parameters.digest,
    email,
    role,
    by.name,
    nowMs,
    expiresAtMs,
    mailed,
  );
  yield* record(parameters, organizationId, {
    action: "invitation.create",
    subjectId: invitationId,
    subject: email,
    details: { role, link: mailed ? "mailed" : "shown" },
  });
  const invitation = {
    invitationId,
    organizationId,
    organization: organization.name,
    email,
    role,
    createdBy: by.name,
    createdAtMs: nowMs,
    expiresAtMs,
    mailed,
  };
  return { outcome: "invited", invitation };
}

export function* listInvitations({
  organizationId,
  nowMs,
  limit,
}: Parameters<Accounts["listInvitations"]>[0]): Operation<InvitationRecord[]> {
  const rows = yield* query<InvitationRow>(
    `${SELECT} WHERE i.organization_id = ? AND i.expires_at_ms > ? ORDER BY i.email LIMIT ?`,
    organizationId,
    nowMs,
    limit,
  );
  return rows.map(toInvitation);
}

export function* deleteInvitation(
  parameters: Parameters<Accounts["deleteInvitation"]>[0],
): Operation<boolean> {
  const { organizationId, invitationId } = parameters;
  yield* lockOrganization(organizationId);
  const [deleted] = yield* query<{ email: string }>(
    "DELETE FROM invitations WHERE organization_id = ? AND invitation_id = ? RETURNING email",
    organizationId,
    invitationId,
  );
  if (deleted === undefined) {
    return false;
  }
  yield* record(parameters, organizationId, {
    action: "invitation.delete",
    subjectId: invitationId,
    subject: deleted.email,
  });
  return true;
}

export function* findInvitation(
  parameters: Parameters<Accounts["findInvitation"]>[0],
): Operation<InvitationRecord | undefined> {
  const [column, value] =
    "digest" in parameters ? ["digest", parameters.digest] : ["email", parameters.email];
  const [row] = yield* query<InvitationRow>(
    `${SELECT} WHERE i.${column} = ? AND i.expires_at_ms > ?
     ORDER BY i.created_at_ms DESC LIMIT 1`,
    value,
    parameters.nowMs,
  );
  return row && toInvitation(row);
}

/** Reads an open invitation under the lock of its organization. */
function* lockInvitation(
  invitationId: string,
  nowMs: number,
): Operation<InvitationRecord | undefined> {
  const [found] = yield* query<{ organization_id: string }>(
    "SELECT organization_id FROM invitations WHERE invitation_id = ?",
    invitationId,
  );
  if (found === undefined) {
    return undefined;
  }
  yield* lockOrganization(found.organization_id);
  const [row] = yield* query<InvitationRow>(
    `${SELECT} WHERE i.invitation_id = ? AND i.expires_at_ms > ?`,
    invitationId,
    nowMs,
  );
  return row && toInvitation(row);
}

export function* acceptInvitation(
  parameters: Parameters<Accounts["acceptInvitation"]>[0],
): Operation<Awaited<ReturnType<Organizations["acceptInvitation"]>>> {
  const { invitationId, userId, newUser, currentHash, session, nowMs } = parameters;
  const invitation = yield* lockInvitation(invitationId, nowMs);
  if (invitation === undefined) {
    return { outcome: "not_found" };
  }
  const { organizationId, email, role } = invitation;
  // Only the invited address may accept, whatever the caller has checked.
  const user = newUser ?? (yield* findUser({ userId }));
  if (user?.email !== email) {
    return { outcome: "not_found" };
  }
  if (currentHash !== undefined && !(yield* lockPassword(userId, currentHash))) {
    return { outcome: "password_changed" };
  }
  // Only the owner of the mailbox can have a link that was mailed.
  const { emailVerified = invitation.mailed } = newUser ?? {};
  if (newUser && !(yield* insertUser({ ...newUser, emailVerified, userId, nowMs }))) {
    return { outcome: "user_exists" };
  }
  yield* query(
    "DELETE FROM invitations WHERE organization_id = ? AND invitation_id = ?",
    organizationId,
    invitationId,
  );
  yield* addMember({ organizationId, userId, email, role, nowMs });
  if (session) {
    yield* insertSession({ userId, session, nowMs, by: parameters.by });
  }
  yield* record(parameters, organizationId, {
    action: "member.join",
    subjectId: userId,
    subject: email,
    details: { role, invited_by: invitation.createdBy },
  });
  yield* announce(nowMs, { kind: "user", id: userId });
  return { outcome: "joined" };
}
