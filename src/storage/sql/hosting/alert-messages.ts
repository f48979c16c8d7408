/** The messages about alerts for receivers: one message of what fires, or clears, together. */
import type {
  AlertKind,
  AlertMessage,
  AlertRuleRecord,
  AlertTransition,
} from "../../hosting/alerts.ts";
import { type Operation, placeholders, query } from "../operation.ts";

/** Alerts that one message names; the others it counts. */
const MAX_TOLD_ALERTS = 20;

/** The numbers by which deliveries store what they tell of, beside the states of tasks. */
const EVENTS = { firing: 16, cleared: 17 } as const;

/** What a delivery tells of alerts; undefined for one that does not. */
export function alertOf(event: number): AlertTransition | undefined {
  return (Object.keys(EVENTS) as AlertTransition[]).find((one) => EVENTS[one] === event);
}

/** The condition of a rule in words. */
export function conditionOf({
  kind,
  threshold,
}: Pick<AlertRuleRecord, "kind" | "threshold">): string {
  switch (kind) {
    case "oldest_task_waits":
      return `the oldest task waits for more than ${threshold} s`;
    case "failures":
      return `more than ${threshold} % of the tasks of ten minutes fail`;
    case "deployment_degraded":
      return "any deployment is degraded or has failed";
    case "worker_restarts":
      return `workers were restarted more than ${threshold} times in ten minutes`;
    case "disk_free":
      return `less than ${threshold} % of the disk is free`;
    case "token_ends":
      return `an organization token ends within ${threshold} days`;
    case "webhook_off":
      return "any webhook or receiver is disabled or failing";
    case "budget_used":
      return `${threshold} % of a budget are used, or all of it`;
  }
}

export interface AlertRow {
  readonly alert_id: string;
  readonly rule: string;
  readonly kind: AlertKind;
  readonly subject: string;
  readonly name: string;
  readonly text: string;
  readonly since_ms: number;
  readonly fired_at_ms: number | null;
  readonly absent_since_ms: number | null;
  readonly cleared_at_ms: number | null;
  readonly told: number;
}

export interface ToldRule {
  readonly organizationId: string;
  readonly name: string;
  readonly kind: AlertKind;
  readonly threshold: number;
  readonly receivers: readonly string[];
}

/** Adds a delivery of these alerts, of which there is one, for each receiver that is enabled. */
export function* tell(
  rule: ToldRule,
  transition: AlertTransition,
  {
    alerts,
    nowMs,
    platformUrl,
  }: {
    readonly alerts: readonly AlertRow[];
    readonly nowMs: number;
    readonly platformUrl: string;
  },
): Operation<void> {
  const [first] = alerts;
  const { organizationId, receivers, name, kind } = rule;
  if (first === undefined || receivers.length === 0) {
    return;
  }
  const [found] = yield* query<{ name: string }>(
    "SELECT name FROM organizations WHERE organization_id = ?",
    organizationId,
  );
  const organization = found?.name ?? "";
  const body: AlertMessage = {
    type: `alert.${transition}`,
    timestamp: timeText(nowMs),
    data: {
      organization,
      rule: name,
      kind,
      condition: conditionOf(rule),
      alerts: alerts.slice(0, MAX_TOLD_ALERTS).map((one) => ({
        id: one.alert_id,
        subject: one.name,
        text: one.text,
        since: timeText(one.since_ms),
        fired_at: timeText(one.fired_at_ms ?? nowMs),
        ...(one.cleared_at_ms !== null && { cleared_at: timeText(one.cleared_at_ms) }),
      })),
      more: Math.max(0, alerts.length - MAX_TOLD_ALERTS),
      url: `${platformUrl}/o/${organization}/alerts`,
    },
  };
  yield* query(
    `INSERT INTO webhook_deliveries (organization_id, deployment_id, webhook_id, delivery_id, event,
       endpoint, task_id, created_at_ms, body)
     SELECT organization_id, deployment_id, webhook_id, ? || name, ${EVENTS[transition]}, '', '',
       cast(? AS bigint), ?
     FROM webhooks WHERE organization_id = ? AND deployment_id = ? AND disabled_at_ms IS NULL
       AND name IN ${placeholders(1, receivers.length)}
     ON CONFLICT DO NOTHING`,
    `${first.alert_id}-${transition}-`,
    nowMs,
    JSON.stringify(body),
    organizationId,
    organizationId,
    ...receivers,
  );
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
