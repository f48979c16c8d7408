/** Alert rules, alerts and receivers as messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AlertKind,
  AlertReceiverKind,
  type AlertReceiverSchema,
  type AlertRuleSchema,
  type AlertSchema,
} from "../../../gen/tessera/v1/alert_pb.js";
import { keyWith } from "../../collections/key-with.ts";
import type {
  AlertRecord,
  AlertRuleRecord,
  AlertKind as Kind,
} from "../../storage/hosting/alerts.ts";
import type { ReceiverKind, WebhookRecord } from "../../storage/hosting/webhooks.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";

const KINDS = {
  oldest_task_waits: AlertKind.OLDEST_TASK_WAITS,
  failures: AlertKind.FAILURES,
  deployment_degraded: AlertKind.DEPLOYMENT_DEGRADED,
  worker_restarts: AlertKind.WORKER_RESTARTS,
  disk_free: AlertKind.DISK_FREE,
  token_ends: AlertKind.TOKEN_ENDS,
  webhook_off: AlertKind.WEBHOOK_OFF,
  budget_used: AlertKind.BUDGET_USED,
} as const satisfies Record<Kind, AlertKind>;

const RECEIVER_KINDS = {
  webhook: AlertReceiverKind.WEBHOOK,
  mail: AlertReceiverKind.MAIL,
  slack: AlertReceiverKind.SLACK,
} as const satisfies Record<ReceiverKind, AlertReceiverKind>;

/** Undefined where a request names none. */
export function kindOf(asked: AlertKind): Kind | undefined {
  return keyWith<Kind, AlertKind>(KINDS, asked);
}

/** Undefined where a request names none. */
export function receiverKindOf(asked: AlertReceiverKind): ReceiverKind | undefined {
  return keyWith<ReceiverKind, AlertReceiverKind>(RECEIVER_KINDS, asked);
}

export function toRuleMessage(
  record: AlertRuleRecord,
  nowMs: number,
): MessageInitShape<typeof AlertRuleSchema> {
  const {
    name,
    threshold,
    condition,
    disabled,
    firing,
    pending,
    createdBy,
    version,
    silencedUntilMs,
    evaluatedAtMs,
  } = record;
  return {
    ...{ name, threshold, condition, disabled, firing, pending, createdBy, version },
    kind: KINDS[record.kind],
    deployments: [...record.deployments],
    receivers: [...record.receivers],
    hold: durationFromMs(record.holdMs),
    createdAt: timestampFromMs(record.createdAtMs),
    ...(silencedUntilMs > nowMs && { silencedUntil: timestampFromMs(silencedUntilMs) }),
    ...(evaluatedAtMs !== undefined && { evaluatedAt: timestampFromMs(evaluatedAtMs) }),
  };
}

export function toAlertMessage(record: AlertRecord): MessageInitShape<typeof AlertSchema> {
  const { alertId: id, rule, kind, name: subject, text, firedAtMs, clearedAtMs } = record;
  return {
    ...{ id, rule, subject, text },
    kind: KINDS[kind],
    since: timestampFromMs(record.sinceMs),
    ...(firedAtMs !== undefined && { firedAt: timestampFromMs(firedAtMs) }),
    ...(clearedAtMs !== undefined && { clearedAt: timestampFromMs(clearedAtMs) }),
  };
}

export function toReceiverMessage(
  record: WebhookRecord,
  nowMs: number,
): MessageInitShape<typeof AlertReceiverSchema> {
  const { name, kind, url, disabled, failures, waiting, createdBy, version, pausedUntilMs } =
    record;
  return {
    ...{ name, failures, waiting, createdBy, version },
    kind: RECEIVER_KINDS[kind],
    address: url.replace(/^mailto:/, ""),
    createdAt: timestampFromMs(record.createdAtMs),
    ...(disabled && { disabled: true, disabledReason: disabled.reason }),
    ...(pausedUntilMs > nowMs && { pausedUntil: timestampFromMs(pausedUntilMs) }),
  };
}
