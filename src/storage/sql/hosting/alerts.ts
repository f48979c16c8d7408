/** Rules of alerts, and what they have found: when it fires, when it clears, and who is told. */
import type { Page } from "../../accounts/page.ts";
import type {
  AlertKind,
  AlertRecord,
  AlertRuleRecord,
  AlertRuleSettings,
  AlertStorage,
  Finding,
  TakenRule,
} from "../../hosting/alerts.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";
import { type AlertRow, conditionOf, type ToldRule, tell } from "./alert-messages.ts";
import { deleteWebhook } from "./webhooks.ts";

/** Alerts that one statement changes. */
const MAX_ALERTS_PER_STATEMENT = 100;

type Given<Name extends keyof AlertStorage> = Parameters<HostingStorage[Name]>[0];
type Result<Name extends keyof AlertStorage> = Operation<Awaited<ReturnType<AlertStorage[Name]>>>;

interface RuleRow {
  readonly organization_id: string;
  readonly name: string;
  readonly rule_id: string;
  readonly kind: AlertKind;
  readonly threshold: number;
  readonly deployments: string;
  readonly receivers: string;
  readonly hold_ms: number;
  readonly disabled: number;
  readonly silenced_until_ms: number;
  readonly evaluated_at_ms: number | null;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly version: number;
}

const COLUMNS = `organization_id, name, rule_id, kind, threshold, deployments, receivers, hold_ms,
  disabled, silenced_until_ms, evaluated_at_ms, created_at_ms, created_by, version`;

const SELECT = `SELECT ${COLUMNS}, (SELECT count(*) FROM alerts a
    WHERE a.rule_id = r.rule_id AND a.cleared_at_ms IS NULL AND a.fired_at_ms IS NOT NULL) AS firing,
    (SELECT count(*) FROM alerts a
    WHERE a.rule_id = r.rule_id AND a.cleared_at_ms IS NULL AND a.fired_at_ms IS NULL) AS pending
  FROM alert_rules r`;

/** A rule with how many of its alerts fire and are pending. */
interface CountedRuleRow extends RuleRow {
  readonly firing: number;
  readonly pending: number;
}

function toRule(row: CountedRuleRow): AlertRuleRecord {
  return {
    name: row.name,
    ruleId: row.rule_id,
    kind: row.kind,
    threshold: row.threshold,
    deployments: JSON.parse(row.deployments) as string[],
    receivers: JSON.parse(row.receivers) as string[],
    holdMs: row.hold_ms,
    condition: conditionOf(row),
    disabled: row.disabled === 1,
    silencedUntilMs: row.silenced_until_ms,
    firing: row.firing,
    pending: row.pending,
    evaluatedAtMs: row.evaluated_at_ms ?? undefined,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    version: row.version,
  };
}

export function* listAlertRules({
  organizationId,
}: Given<"listAlertRules">): Operation<AlertRuleRecord[]> {
  const rows = yield* query<CountedRuleRow>(
    `${SELECT} WHERE organization_id = ? ORDER BY name`,
    organizationId,
  );
  return rows.map(toRule);
}

function* findRule(organizationId: string, name: string): Operation<AlertRuleRecord | undefined> {
  const [row] = yield* query<CountedRuleRow>(
    `${SELECT} WHERE organization_id = ? AND name = ?`,
    organizationId,
    name,
  );
  return row && toRule(row);
}

/** The first of these receivers that the organization does not have. */
function* unknownReceiver(
  organizationId: string,
  receivers: readonly string[],
): Operation<string | undefined> {
  const rows = yield* query<{ name: string }>(
    "SELECT name FROM webhooks WHERE organization_id = ? AND deployment_id = ?",
    organizationId,
    organizationId,
  );
  return receivers.find((receiver) => !rows.some(({ name }) => name === receiver));
}

function detailsOf(rule: AlertRuleSettings & { readonly kind: AlertKind }) {
  const { kind, threshold, deployments, receivers, holdMs } = rule;
  return {
    kind,
    threshold: String(threshold),
    hold_seconds: String(holdMs / 1_000),
    ...(deployments.length > 0 && { deployments: deployments.join(" ") }),
    ...(receivers.length > 0 && { receivers: receivers.join(" ") }),
  };
}

export function* createAlertRule(parameters: Given<"createAlertRule">): Result<"createAlertRule"> {
  const { organizationId, name, ruleId, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const there = yield* listAlertRules(parameters);
  if (there.some((one) => one.name === name)) {
    return { outcome: "name_taken" };
  }
  if (there.length >= parameters.limit) {
    return { outcome: "limit" };
  }
  const receiver = yield* unknownReceiver(organizationId, parameters.receivers);
  if (receiver !== undefined) {
    return { outcome: "receiver_unknown", receiver };
  }
  yield* query(
    `INSERT INTO alert_rules (organization_id, name, rule_id, kind, threshold, deployments,
       receivers, hold_ms, due_at_ms, created_at_ms, created_by)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)`,
    organizationId,
    name,
    ruleId,
    parameters.kind,
    parameters.threshold,
    JSON.stringify(parameters.deployments),
    JSON.stringify(parameters.receivers),
    parameters.holdMs,
    nowMs,
    parameters.by.name,
  );
  yield* record(parameters, organizationId, {
    ...{ action: "alert_rule.create", subjectId: ruleId, subject: name },
    details: detailsOf(parameters),
  });
  // Nodes that had no rule to look after begin to.
  yield* announce(nowMs, { kind: "deployment", id: organizationId });
  const rule = yield* findRule(organizationId, name);
  if (rule === undefined) {
    throw new Error("the rule that was just stored is not there");
  }
  return { outcome: "created", rule };
}

export function* updateAlertRule(parameters: Given<"updateAlertRule">): Result<"updateAlertRule"> {
  const { organizationId, name, nowMs, enabled, platformUrl } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findRule(organizationId, name);
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (before.version !== (parameters.version ?? before.version)) {
    return { outcome: "version_conflict" };
  }
  const { threshold = before.threshold, deployments = before.deployments } = parameters;
  const { receivers = before.receivers, holdMs = before.holdMs } = parameters;
  const { silencedUntilMs = before.silencedUntilMs } = parameters;
  const receiver = yield* unknownReceiver(organizationId, parameters.receivers ?? []);
  if (receiver !== undefined) {
    return { outcome: "receiver_unknown", receiver };
  }
  const disabled = enabled === undefined ? before.disabled : !enabled;
  const { kind, ruleId } = before;
  const after = { kind, threshold, deployments, receivers, holdMs };
  const isSilenced = parameters.silencedUntilMs !== undefined;
  // A node that evaluates what it was records nothing.
  yield* query(
    `UPDATE alert_rules SET threshold = ?, deployments = ?, receivers = ?, hold_ms = ?, disabled = ?,
       silenced_until_ms = ?, claim = '', due_at_ms = ?, version = version + ?
     WHERE organization_id = ? AND name = ?`,
    threshold,
    JSON.stringify(deployments),
    JSON.stringify(receivers),
    holdMs,
    disabled,
    silencedUntilMs,
    disabled ? null : 0,
    isSilenced ? 0 : 1,
    organizationId,
    name,
  );
  if (disabled && !before.disabled) {
    yield* endAlerts({ ...before, organizationId }, { nowMs, platformUrl });
  }
  yield* record(parameters, organizationId, {
    action: isSilenced ? "alert_rule.silence" : "alert_rule.update",
    subjectId: ruleId,
    subject: name,
    details: isSilenced
      ? { seconds: String(Math.max(0, Math.round((silencedUntilMs - nowMs) / 1_000))) }
      : { ...detailsOf(after), ...(enabled !== undefined && { enabled: String(enabled) }) },
  });
  yield* announce(nowMs, { kind: "deployment", id: organizationId });
  const rule = yield* findRule(organizationId, name);
  return rule === undefined ? { outcome: "not_found" } : { outcome: "updated", rule };
}

export function* deleteAlertRule(parameters: Given<"deleteAlertRule">): Operation<boolean> {
  const { organizationId, name, nowMs, platformUrl } = parameters;
  yield* lockOrganization(organizationId);
  const rule = yield* findRule(organizationId, name);
  if (rule === undefined) {
    return false;
  }
  // The row first: who records what it has found waits for it, and finds it gone.
  yield* query(
    "DELETE FROM alert_rules WHERE organization_id = ? AND name = ?",
    organizationId,
    name,
  );
  yield* endAlerts({ ...rule, organizationId }, { nowMs, platformUrl });
  yield* record(parameters, organizationId, {
    action: "alert_rule.delete",
    subjectId: rule.ruleId,
    subject: name,
  });
  return true;
}

export function* deleteAlertReceiver(
  parameters: Given<"deleteAlertReceiver">,
): Result<"deleteAlertReceiver"> {
  const { organizationId, name } = parameters;
  yield* lockOrganization(organizationId);
  const rules = yield* listAlertRules(parameters);
  const rule = rules.find(({ receivers }) => receivers.includes(name));
  if (rule !== undefined) {
    return { outcome: "in_use", rule: rule.name };
  }
  const deleted = yield* deleteWebhook({ ...parameters, deploymentId: organizationId });
  return { outcome: deleted ? "deleted" : "not_found" };
}

const ALERT_COLUMNS = `alert_id, rule, kind, subject, name, text, since_ms, fired_at_ms,
  absent_since_ms, cleared_at_ms, told`;

export function* listAlerts({
  organizationId,
  rule,
  state,
  limit,
  after,
}: Given<"listAlerts">): Operation<Page<AlertRecord>> {
  const [atMs, ...rest] = (after ?? "").split("/");
  const isPending = state === "pending";
  const time = isPending ? "since_ms" : "fired_at_ms";
  // Those that are pending are found by the index of the live alerts of each rule.
  const chosen = isPending
    ? `fired_at_ms IS NULL AND rule_id IN (
         SELECT r.rule_id FROM alert_rules r WHERE r.organization_id = ?)`
    : "fired_at_ms IS NOT NULL";
  const rows = yield* query<AlertRow>(
    `SELECT ${ALERT_COLUMNS} FROM alerts
     WHERE organization_id = ? AND ${chosen}
       ${rule === undefined ? "" : "AND rule = ?"}
       ${state === undefined ? "" : "AND cleared_at_ms IS NULL"}
       ${after === undefined ? "" : `AND (${time}, alert_id) < (?, ?)`}
     ORDER BY ${time} DESC, alert_id DESC LIMIT ?`,
    organizationId,
    ...(isPending ? [organizationId] : []),
    ...(rule === undefined ? [] : [rule]),
    ...(after === undefined ? [] : [Number(atMs), rest.join("/")]),
    limit + 1,
  );
  return toPage(
    rows.map(toAlert),
    limit,
    (one) => `${isPending ? one.sinceMs : one.firedAtMs}/${one.alertId}`,
  );
}

function toAlert(row: AlertRow): AlertRecord {
  const { rule, kind, name, text } = row;
  return {
    ...{ rule, kind, name, text },
    alertId: row.alert_id,
    sinceMs: row.since_ms,
    firedAtMs: row.fired_at_ms ?? undefined,
    clearedAtMs: row.cleared_at_ms ?? undefined,
  };
}

export function* usesAlerts(): Operation<boolean> {
  const rows = yield* query(
    `SELECT 1 AS there WHERE EXISTS (SELECT 1 FROM alert_rules)
       OR EXISTS (SELECT 1 FROM alerts)`,
  );
  return rows.length > 0;
}

export function* takeAlertRules({
  claim,
  nowMs,
  ttlMs,
  limit,
}: Given<"takeAlertRules">): Operation<TakenRule[]> {
  // The condition is repeated: another node may have taken one since it was read.
  const rows = yield* query<RuleRow>(
    `UPDATE alert_rules SET claim = ?, due_at_ms = ?
     WHERE due_at_ms <= ? AND rule_id IN (
       SELECT rule_id FROM alert_rules WHERE due_at_ms <= ?
       ORDER BY due_at_ms, organization_id LIMIT ?)
     RETURNING ${COLUMNS}`,
    claim,
    nowMs + ttlMs,
    nowMs,
    nowMs,
    limit,
  );
  return rows.map((row) => ({
    organizationId: row.organization_id,
    ruleId: row.rule_id,
    name: row.name,
    kind: row.kind,
    threshold: row.threshold,
    deployments: JSON.parse(row.deployments) as string[],
    createdAtMs: row.created_at_ms,
    atMs: nowMs,
  }));
}

export function* recordAlerts(parameters: Given<"recordAlerts">): Result<"recordAlerts"> {
  const { organizationId, ruleId, claim, nowMs, platformUrl } = parameters;
  const [row] = yield* query<RuleRow>(
    `UPDATE alert_rules SET claim = '', evaluated_at_ms = ?
     WHERE organization_id = ? AND rule_id = ? AND claim = ? RETURNING ${COLUMNS}`,
    nowMs,
    organizationId,
    ruleId,
    claim,
  );
  if (row === undefined) {
    return undefined;
  }
  const rule = { ...toRule({ ...row, firing: 0, pending: 0 }), organizationId };
  const before = yield* liveAlerts(ruleId);
  const after = step(before, { ...parameters, holdMs: rule.holdMs, rule });
  for (const gone of pieces(after.gone, MAX_ALERTS_PER_STATEMENT)) {
    yield* query(
      `DELETE FROM alerts WHERE organization_id = ?
         AND alert_id IN ${placeholders(1, gone.length)}`,
      organizationId,
      ...gone,
    );
  }
  for (const some of pieces(after.added, MAX_ALERTS_PER_STATEMENT)) {
    yield* insertAlerts(organizationId, ruleId, some);
  }
  if (rule.silencedUntilMs > nowMs) {
    yield* storeAlerts(organizationId, before, after.kept);
  } else {
    const told = yield* tellChanges(rule, { alerts: after.kept, nowMs, platformUrl });
    yield* storeAlerts(organizationId, before, told);
  }
  const changed = (column: "fired_at_ms" | "cleared_at_ms") =>
    after.kept.filter((one) => one[column] === nowMs).length;
  return { fired: changed("fired_at_ms"), cleared: changed("cleared_at_ms") };
}

/** The alerts of a rule that have not cleared, and those of which that is still to be told. */
function* liveAlerts(ruleId: string): Operation<readonly AlertRow[]> {
  return yield* query<AlertRow>(
    `SELECT ${ALERT_COLUMNS} FROM alerts
     WHERE rule_id = ? AND (cleared_at_ms IS NULL OR told = 1) ORDER BY alert_id`,
    ruleId,
  );
}

interface Step {
  readonly found: readonly Finding[];
  readonly nowMs: number;
  readonly holdMs: number;
  readonly limit: number;
  readonly newId: string;
  readonly rule: Pick<AlertRuleRecord, "name" | "kind">;
}

/** What becomes of the alerts of a rule by what it has found now. */
function step(before: readonly AlertRow[], { found, nowMs, holdMs, limit, newId, rule }: Step) {
  const bySubject = new Map(found.slice(0, limit).map((one) => [one.subject, one]));
  const kept: AlertRow[] = [];
  const gone: string[] = [];
  for (const one of before) {
    if (one.cleared_at_ms !== null) {
      kept.push(one);
      continue;
    }
    const finding = bySubject.get(one.subject);
    bySubject.delete(one.subject);
    if (finding !== undefined) {
      const { name, text } = finding;
      const fires = one.fired_at_ms !== null || nowMs - one.since_ms >= holdMs;
      const fired_at_ms = fires ? (one.fired_at_ms ?? nowMs) : null;
      kept.push({ ...one, name, text, absent_since_ms: null, fired_at_ms });
    } else if (one.fired_at_ms === null) {
      gone.push(one.alert_id);
    } else {
      const absent_since_ms = one.absent_since_ms ?? nowMs;
      const cleared_at_ms = nowMs - absent_since_ms >= holdMs ? nowMs : null;
      kept.push({ ...one, absent_since_ms, cleared_at_ms });
    }
  }
  const added = [...bySubject.values()].map(
    ({ subject, name, text }, index): AlertRow => ({
      ...{ alert_id: `${newId}-${String(index).padStart(4, "0")}`, rule: rule.name },
      ...{ kind: rule.kind, subject, name, text, since_ms: nowMs, fired_at_ms: null },
      ...{ absent_since_ms: null, cleared_at_ms: null, told: 0 },
    }),
  );
  return { kept, gone, added };
}

/** Writes the messages of what nobody was told yet; returns the alerts as they are then. */
function* tellChanges(
  rule: ToldRule,
  {
    alerts,
    ...when
  }: {
    readonly alerts: readonly AlertRow[];
    readonly nowMs: number;
    readonly platformUrl: string;
  },
): Operation<readonly AlertRow[]> {
  const isCleared = (one: AlertRow) => one.cleared_at_ms !== null;
  const firing = alerts.filter(
    (one) => one.told === 0 && one.fired_at_ms !== null && !isCleared(one),
  );
  const cleared = alerts.filter((one) => one.told === 1 && isCleared(one));
  yield* tell(rule, "firing", { alerts: firing, ...when });
  yield* tell(rule, "cleared", { alerts: cleared, ...when });
  return alerts.map((one) => {
    const fires = one.fired_at_ms !== null;
    return { ...one, told: isCleared(one) ? 2 : fires ? 1 : one.told };
  });
}

/** Clears what fires of a rule that looks no more, and forgets what waits. A silence is over. */
function* endAlerts(
  rule: ToldRule & { readonly ruleId: string },
  when: { readonly nowMs: number; readonly platformUrl: string },
): Operation<void> {
  const { organizationId, ruleId } = rule;
  yield* query("DELETE FROM alerts WHERE rule_id = ? AND fired_at_ms IS NULL", ruleId);
  const before = yield* liveAlerts(ruleId);
  const cleared = before.map((one) => ({
    ...one,
    cleared_at_ms: one.cleared_at_ms ?? when.nowMs,
  }));
  yield* storeAlerts(
    organizationId,
    before,
    yield* tellChanges(rule, { alerts: cleared, ...when }),
  );
}

function* insertAlerts(
  organizationId: string,
  ruleId: string,
  alerts: readonly AlertRow[],
): Operation<void> {
  yield* query(
    `INSERT INTO alerts (organization_id, alert_id, rule_id, rule, kind, subject, name, text, since_ms)
     VALUES ${placeholders(alerts.length, 9)}`,
    ...alerts.flatMap((one) => [
      ...[organizationId, one.alert_id, ruleId, one.rule, one.kind],
      ...[one.subject, one.name, one.text, one.since_ms],
    ]),
  );
}

/** Stores those that have changed. */
function* storeAlerts(
  organizationId: string,
  before: readonly AlertRow[],
  after: readonly AlertRow[],
): Operation<void> {
  const known = new Map(before.map((one) => [one.alert_id, JSON.stringify(one)]));
  for (const one of after) {
    if (known.get(one.alert_id) !== JSON.stringify(one)) {
      yield* query(
        `UPDATE alerts SET name = ?, text = ?, fired_at_ms = ?, absent_since_ms = ?,
           cleared_at_ms = ?, told = ?
         WHERE organization_id = ? AND alert_id = ?`,
        one.name,
        one.text,
        one.fired_at_ms,
        one.absent_since_ms,
        one.cleared_at_ms,
        one.told,
        organizationId,
        one.alert_id,
      );
    }
  }
}

export function* listEndingTokens({
  organizationId,
  afterMs,
  beforeMs,
  limit,
}: Given<"listEndingTokens">): Result<"listEndingTokens"> {
  const rows = yield* query<{ token_id: string; name: string; expires_at_ms: number }>(
    `SELECT token_id, name, expires_at_ms FROM tokens
     WHERE organization_id = ? AND kind = 'organization' AND expires_at_ms > ?
       AND expires_at_ms <= ?
     ORDER BY expires_at_ms, token_id LIMIT ?`,
    organizationId,
    afterMs,
    beforeMs,
    limit,
  );
  return rows.map((row) => ({
    tokenId: row.token_id,
    name: row.name,
    expiresAtMs: row.expires_at_ms,
  }));
}

export function* listWebhooksOff({
  organizationId,
  nowMs,
  limit,
}: Given<"listWebhooksOff">): Result<"listWebhooksOff"> {
  const rows = yield* query<{
    webhook_id: string;
    name: string;
    deployment: string | null;
    disabled_at_ms: number | null;
    disabled_reason: string | null;
  }>(
    `SELECT w.webhook_id, w.name, p.name AS deployment, w.disabled_at_ms, w.disabled_reason
     FROM webhooks w LEFT JOIN deployments p ON p.organization_id = w.organization_id
       AND p.deployment_id = w.deployment_id
     WHERE w.organization_id = ? AND (w.disabled_at_ms IS NOT NULL OR w.paused_until_ms > ?)
     ORDER BY w.webhook_id LIMIT ?`,
    organizationId,
    nowMs,
    limit,
  );
  return rows.map((row) => ({
    webhookId: row.webhook_id,
    name: row.name,
    deployment: row.deployment ?? "",
    disabledReason: row.disabled_at_ms === null ? undefined : (row.disabled_reason ?? ""),
  }));
}

export function* pruneAlerts({ beforeMs, limit }: Given<"pruneAlerts">): Operation<number> {
  const gone = yield* query(
    `DELETE FROM alerts WHERE (organization_id, alert_id) IN (
       SELECT organization_id, alert_id FROM alerts WHERE cleared_at_ms < ?
       ORDER BY cleared_at_ms LIMIT ?)
     RETURNING alert_id`,
    beforeMs,
    limit,
  );
  return gone.length;
}
