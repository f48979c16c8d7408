/** Conversion of organizations, members, invitations and audit events to messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AuditEventSchema,
  type InvitationSchema,
  type MemberSchema,
  type OrganizationSchema,
  Role as RoleWord,
} from "../../../gen/tessera/v1/organization_pb.js";
import type {
  AuditRecord,
  InvitationRecord,
  MemberRecord,
  OrganizationRecord,
} from "../../storage/accounts/organizations.ts";
import type { Role } from "../../storage/accounts/people.ts";
import { timestampFromMs } from "../../time/messages.ts";

/** Roles as the proto file spells them. */
export const ROLE = { admin: RoleWord.ADMIN, member: RoleWord.MEMBER } as const;

/** The role of a word; absent is a member. */
export function roleOf(word: RoleWord): Role {
  return word === RoleWord.ADMIN ? "admin" : "member";
}

/** @param role the caller's role; undefined for an organization's token. */
export function toOrganizationMessage(
  record: OrganizationRecord,
  role: Role | undefined,
): MessageInitShape<typeof OrganizationSchema> {
  const { name, displayName, createdAtMs, monitoringEnabled, revealEnabled } = record;
  return {
    name,
    displayName,
    createdAt: timestampFromMs(createdAtMs),
    monitoringEnabled,
    ...monitoringAskedOf(record),
    revealEnabled,
    ...(role !== undefined && { role: ROLE[role] }),
  };
}

/** The fields of a request for monitoring tokens; none where there is no request. */
export function monitoringAskedOf({ monitoringAsked: asked }: OrganizationRecord) {
  return asked && { monitoringAskedAt: timestampFromMs(asked.atMs), monitoringAskedBy: asked.by };
}

export function toMemberMessage(record: MemberRecord): MessageInitShape<typeof MemberSchema> {
  const { userId, email, displayName, role, joinedAtMs } = record;
  return {
    userId,
    email,
    displayName,
    role: ROLE[role],
    joinedAt: timestampFromMs(joinedAtMs),
  };
}

export function toInvitationMessage(
  record: InvitationRecord,
): MessageInitShape<typeof InvitationSchema> {
  const { invitationId, email, role, createdBy, organization } = record;
  return {
    invitationId,
    email,
    role: ROLE[role],
    createdBy,
    createdAt: timestampFromMs(record.createdAtMs),
    expiresAt: timestampFromMs(record.expiresAtMs),
    organization,
  };
}

export function toAuditMessage(record: AuditRecord): MessageInitShape<typeof AuditEventSchema> {
  const { eventId, timeMs, action, actor, address, subjectId, subject, details } = record;
  return {
    eventId,
    time: timestampFromMs(timeMs),
    action,
    actor,
    address,
    subjectId,
    subject,
    details: { ...details },
  };
}
