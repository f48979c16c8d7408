/** Creates, reads and changes organizations. */
import type { Accounts } from "../../accounts/accounts.ts";
import type {
  ListedOrganization,
  OrganizationRecord,
  Organizations,
} from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import type { Role } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { lockOrganization, lockPlatform } from "./locks.ts";
import {
  ORGANIZATION_COLUMNS as COLUMNS,
  type OrganizationRow,
  toOrganization,
  toPage,
} from "./rows.ts";

/** Inserts an organization; undefined when the name is taken. */
export function* addOrganization(organization: {
  readonly organizationId: string;
  readonly name: string;
  readonly displayName: string;
  readonly invitationLinksEnabled: boolean;
  readonly nowMs: number;
}): Operation<OrganizationRecord | undefined> {
  const [row] = yield* query<OrganizationRow>(
    `INSERT INTO organizations
       (organization_id, name, display_name, created_at_ms, invitation_links_enabled)
     VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING ${COLUMNS}`,
    organization.organizationId,
    organization.name,
    organization.displayName,
    organization.nowMs,
    organization.invitationLinksEnabled,
  );
  return row && toOrganization(row);
}

/** Adds a member; an existing member keeps their role. */
export function* addMember(member: {
  readonly organizationId: string;
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly nowMs: number;
}): Operation<void> {
  yield* query(
    `INSERT INTO memberships (organization_id, user_id, email, role, joined_at_ms)
     VALUES (?, ?, ?, ?, ?) ON CONFLICT (organization_id, user_id) DO NOTHING`,
    member.organizationId,
    member.userId,
    member.email,
    member.role,
    member.nowMs,
  );
}

export function* createOrganization(
  parameters: Parameters<Accounts["createOrganization"]>[0],
): Operation<Awaited<ReturnType<Organizations["createOrganization"]>>> {
  const { organizationId, userId, nowMs } = parameters;
  const [user] = yield* query<{ email: string }>(
    "SELECT email FROM users WHERE user_id = ?",
    userId,
  );
  if (user === undefined) {
    throw new Error(`an organization was created for user ${userId}, who does not exist`);
  }
  if (parameters.limit !== undefined && (yield* isFull(parameters.limit))) {
    return { outcome: "limit" };
  }
  const organization = yield* addOrganization({ ...parameters, invitationLinksEnabled: false });
  if (organization === undefined) {
    return { outcome: "name_taken" };
  }
  yield* addMember({ organizationId, userId, email: user.email, role: "admin", nowMs });
  yield* record(parameters, organizationId, {
    action: "organization.create",
    subjectId: organizationId,
    subject: organization.name,
    details: { admin: user.email },
  });
  yield* announce(nowMs, { kind: "user", id: userId });
  return { outcome: "created", organization };
}

/** Whether the platform has this many organizations; it stays so until the transaction ends. */
function* isFull(limit: number): Operation<boolean> {
  yield* lockPlatform("setup");
  const rows = yield* query("SELECT organization_id FROM organizations LIMIT ?", limit);
  return rows.length >= limit;
}

export function* findOrganization(
  parameters: Parameters<Accounts["findOrganization"]>[0],
): Operation<OrganizationRecord | undefined> {
  const [column, value] =
    "name" in parameters
      ? ["name", parameters.name]
      : ["organization_id", parameters.organizationId];
  const [row] = yield* query<OrganizationRow>(
    `SELECT ${COLUMNS} FROM organizations WHERE ${column} = ?`,
    value,
  );
  return row && toOrganization(row);
}

export function* listOrganizations({
  limit,
  after = "",
}: Parameters<Accounts["listOrganizations"]>[0]): Operation<Page<ListedOrganization>> {
  const rows = yield* query<OrganizationRow & Pick<ListedOrganization, "members" | "deployments">>(
    `SELECT ${COLUMNS},
       (SELECT CAST(count(*) AS integer) FROM memberships m
        WHERE m.organization_id = organizations.organization_id) AS members,
       (SELECT CAST(count(*) AS integer) FROM deployments d
        WHERE d.organization_id = organizations.organization_id) AS deployments
     FROM organizations WHERE name > ? ORDER BY name LIMIT ?`,
    after,
    limit + 1,
  );
  const organizations = rows.map((row) => ({
    ...toOrganization(row),
    members: row.members,
    deployments: row.deployments,
  }));
  return toPage(organizations, limit, ({ name }) => name);
}

export function* updateOrganization(
  parameters: Parameters<Accounts["updateOrganization"]>[0],
): Operation<OrganizationRecord | undefined> {
  const { organizationId, nowMs } = parameters;
  const before = yield* lockOrganization(organizationId);
  if (before === undefined) {
    return undefined;
  }
  const {
    displayName = before.displayName,
    revealEnabled = before.revealEnabled,
    monitoringEnabled = before.monitoringEnabled,
    invitationLinksEnabled = before.invitationLinksEnabled,
  } = parameters;
  const changed = { displayName, revealEnabled, monitoringEnabled, invitationLinksEnabled };
  const { monitoringAsked: _answered, ...others } = before;
  const isAnswered = parameters.monitoringEnabled !== undefined;
  const after = { ...(isAnswered ? others : before), ...changed };
  yield* query(
    `UPDATE organizations SET display_name = ?, reveal_enabled = ?, monitoring_enabled = ?,
       invitation_links_enabled = ? WHERE organization_id = ?`,
    displayName,
    revealEnabled,
    monitoringEnabled,
    invitationLinksEnabled,
    organizationId,
  );
  if (isAnswered) {
    yield* query(
      `UPDATE organizations SET monitoring_asked_at_ms = NULL, monitoring_asked_by = NULL
       WHERE organization_id = ?`,
      organizationId,
    );
  }
  if (!revealEnabled) {
    yield* query(
      "UPDATE token_secrets SET sealed = NULL WHERE organization_id = ? AND sealed IS NOT NULL",
      organizationId,
    );
  }
  yield* record(parameters, organizationId, {
    action: "organization.update",
    subjectId: organizationId,
    subject: before.name,
    details: changesBetween(before, after),
  });
  yield* announce(nowMs, { kind: "organization", id: organizationId });
  return after;
}

export function* askForMonitoring(
  parameters: Parameters<Accounts["askForMonitoring"]>[0],
): Operation<OrganizationRecord | undefined> {
  const { organizationId, nowMs, by } = parameters;
  const before = yield* lockOrganization(organizationId);
  if (before === undefined || before.monitoringEnabled || before.monitoringAsked !== undefined) {
    return before;
  }
  yield* query(
    `UPDATE organizations SET monitoring_asked_at_ms = ?, monitoring_asked_by = ?
     WHERE organization_id = ?`,
    nowMs,
    by.name,
    organizationId,
  );
  yield* record(parameters, organizationId, {
    action: "organization.ask_for_monitoring",
    subjectId: organizationId,
    subject: before.name,
  });
  return { ...before, monitoringAsked: { by: by.name, atMs: nowMs } };
}

const FIELDS = {
  displayName: "display_name",
  revealEnabled: "reveal_enabled",
  monitoringEnabled: "monitoring_enabled",
  invitationLinksEnabled: "invitation_links_enabled",
} as const;

/** Describes changed fields with their new values. */
function changesBetween(
  before: OrganizationRecord,
  after: OrganizationRecord,
): { [name: string]: string } {
  const fields = Object.keys(FIELDS) as (keyof typeof FIELDS)[];
  return Object.fromEntries(
    fields
      .filter((field) => before[field] !== after[field])
      .map((field) => [FIELDS[field], String(after[field])]),
  );
}
