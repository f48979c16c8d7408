/** Writes and reads the audit log. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { AuditEntry } from "../../accounts/audit.ts";
import type { Deed } from "../../accounts/deed.ts";
import type { AuditRecord } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import { type Operation, query } from "../operation.ts";
import { toPage } from "./rows.ts";

const COLUMNS =
  "organization_id, event_id, time_ms, action, actor, actor_id, address, subject_id, subject, details";

/** The values of all columns except the organization. */
const VALUES = "?, CAST(? AS bigint), ?, ?, ?, ?, ?, ?, ?";

function valuesOf({ eventId, nowMs, by }: Deed, entry: AuditEntry): (string | number)[] {
  const { action, subjectId, subject, details = {} } = entry;
  const token = by.token && { by_token: by.token.name, by_token_id: by.token.id };
  const what = [subjectId, subject, JSON.stringify({ ...details, ...token })];
  return [eventId, nowMs, action, by.name, by.id, by.address, ...what];
}

/** Writes an audit event of one organization. */
export function* record(deed: Deed, organizationId: string, entry: AuditEntry): Operation<void> {
  yield* query(
    `INSERT INTO audit_events (${COLUMNS}) VALUES (?, ${VALUES})`,
    organizationId,
    ...valuesOf(deed, entry),
  );
}

/** Writes an audit event in every organization of a person. */
export function* recordForUser(deed: Deed, userId: string, entry: AuditEntry): Operation<void> {
  yield* query(
    `INSERT INTO audit_events (${COLUMNS})
     SELECT organization_id, ${VALUES} FROM memberships WHERE user_id = ?`,
    ...valuesOf(deed, entry),
    userId,
  );
}

/** Writes an audit event in all organizations. */
export function* recordEverywhere(deed: Deed, entry: AuditEntry): Operation<void> {
  yield* query(
    `INSERT INTO audit_events (${COLUMNS}) SELECT organization_id, ${VALUES} FROM organizations`,
    ...valuesOf(deed, entry),
  );
}

export function* recordAuditEvent(
  parameters: Parameters<Accounts["recordAuditEvent"]>[0],
): Operation<void> {
  yield* record(parameters, parameters.organizationId, parameters);
}

interface AuditRow {
  readonly event_id: string;
  readonly time_ms: number;
  readonly action: string;
  readonly actor: string;
  readonly address: string;
  readonly subject_id: string;
  readonly subject: string;
  readonly details: string;
}

/** Events that one page looks at, whatever its filter. */
const MAX_EVENTS_LOOKED_AT = 2_000;

/**
 * Newest first. The filter is applied to a bounded number of events; where no more of them fit, the
 * page ends at the last one that was looked at.
 */
export function* listAuditEvents({
  organizationId,
  limit,
  after,
  actor,
  action,
  subject,
  from,
}: Parameters<Accounts["listAuditEvents"]>[0]): Operation<Page<AuditRecord>> {
  const looked = allOf([
    ["organization_id = ?", organizationId],
    after !== undefined && ["event_id < ?", after],
    from !== undefined && ["event_id >= ?", from],
  ]);
  const wanted = allOf([
    actor !== undefined && ["actor = ?", actor],
    action !== undefined && ["(action = ? OR action LIKE ? || '.%')", action, action],
    subject !== undefined && ["(subject_id = ? OR subject = ?)", subject, subject],
  ]);
  const rows = yield* query<AuditRow>(
    `SELECT * FROM (
       SELECT event_id, time_ms, action, actor, address, subject_id, subject, details
       FROM audit_events ${looked.where} ORDER BY event_id DESC LIMIT ?
     ) AS looked_at
     ${wanted.where} ORDER BY event_id DESC LIMIT ?`,
    ...looked.values,
    MAX_EVENTS_LOOKED_AT,
    ...wanted.values,
    limit + 1,
  );
  const page = toPage(rows.map(toAuditRecord), limit, ({ eventId }) => eventId);
  if (page.next !== undefined || wanted.where === "") {
    return page;
  }
  const [last] = yield* query<Pick<AuditRow, "event_id">>(
    `SELECT event_id FROM audit_events ${looked.where}
     ORDER BY event_id DESC LIMIT 1 OFFSET ?`,
    ...looked.values,
    MAX_EVENTS_LOOKED_AT - 1,
  );
  return { items: page.items, next: last?.event_id };
}

type Condition = readonly [sql: string, ...values: string[]];

/** A WHERE clause of the conditions that there are, with its values; empty without any. */
function allOf(conditions: readonly (Condition | false)[]) {
  const given = conditions.filter((one): one is Condition => one !== false);
  const where = given.length === 0 ? "" : `WHERE ${given.map(([sql]) => sql).join(" AND ")}`;
  return { where, values: given.flatMap(([, ...values]) => values) };
}

function toAuditRecord(row: AuditRow): AuditRecord {
  const { action, actor, address, subject } = row;
  return {
    eventId: row.event_id,
    timeMs: row.time_ms,
    action,
    actor,
    address,
    subjectId: row.subject_id,
    subject,
    details: JSON.parse(row.details) as AuditRecord["details"],
  };
}
