/**
 * The outbox of webhooks: deliveries that are added, taken by one node, recorded and deleted. What
 * writes both locks deliveries first and then webhooks, so that no two wait for each other.
 */
import type { Page } from "../../accounts/page.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  DeliveryAnswer,
  DeliveryRecord,
  DeliveryState,
  EndedTask,
  ReceiverKind,
  Redelivered,
  TakenDelivery,
} from "../../hosting/webhooks.ts";
import { record } from "../accounts/audit.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, placeholders, query } from "../operation.ts";
import { alertOf } from "./alert-messages.ts";
import { actionOf, endOf } from "./webhooks.ts";

const STATES: readonly DeliveryState[] = ["waiting", "delivered", "failed"];

interface DeliveryRow {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly webhook: string | null;
  readonly event: number;
  readonly task_id: string;
  readonly endpoint: string;
  readonly created_at_ms: number;
  readonly state: number;
  readonly attempts: number;
  readonly next_at_ms: number;
  readonly answers: string;
  readonly body?: string | null;
}

const COLUMNS = `d.delivery_id, d.webhook_id, d.event, d.task_id, d.endpoint, d.created_at_ms,
  d.state, d.attempts, d.next_at_ms, d.answers,
  (SELECT w.name FROM webhooks w
   WHERE w.deployment_id = d.deployment_id AND w.webhook_id = d.webhook_id) AS webhook`;

function toDelivery(row: DeliveryRow): DeliveryRecord {
  return {
    deliveryId: row.delivery_id,
    webhookId: row.webhook_id,
    webhook: row.webhook ?? "",
    end: endOf(row.event),
    alert: alertOf(row.event),
    taskId: row.task_id,
    endpoint: row.endpoint,
    createdAtMs: row.created_at_ms,
    state: STATES[row.state] ?? "waiting",
    attempts: row.attempts,
    nextAtMs: row.next_at_ms,
    answers: JSON.parse(row.answers) as DeliveryAnswer[],
    body: row.body ?? undefined,
  };
}

export function* addTestDelivery(
  parameters: Parameters<HostingStorage["addTestDelivery"]>[0],
): Operation<DeliveryRecord | undefined> {
  const { organizationId, deploymentId, name, deliveryId, body, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const [webhook] = yield* query<{ webhook_id: string }>(
    `UPDATE webhooks SET paused_until_ms = 0
     WHERE organization_id = ? AND deployment_id = ? AND name = ? RETURNING webhook_id`,
    organizationId,
    deploymentId,
    name,
  );
  if (webhook === undefined) {
    return undefined;
  }
  // Due before anything else of its webhook.
  yield* query(
    `INSERT INTO webhook_deliveries (organization_id, deployment_id, delivery_id, webhook_id, event,
       task_id, endpoint, created_at_ms, next_at_ms, body)
     VALUES (?, ?, ?, ?, 0, '', '', ?, -1, ?)`,
    organizationId,
    deploymentId,
    deliveryId,
    webhook.webhook_id,
    nowMs,
    body,
  );
  yield* record(parameters, organizationId, {
    action: actionOf(parameters, "test"),
    subjectId: webhook.webhook_id,
    subject: name,
  });
  return yield* getDelivery(parameters);
}

export function* redeliver(
  parameters: Parameters<HostingStorage["redeliver"]>[0],
): Operation<Redelivered | undefined> {
  const { organizationId, deploymentId, deliveryId } = parameters;
  yield* lockOrganization(organizationId);
  // The node that sends it now has another claim, and records nothing.
  const [delivery] = yield* query<{ webhook_id: string }>(
    `UPDATE webhook_deliveries SET state = 0, attempts = 0, next_at_ms = -1, claim = ''
     WHERE organization_id = ? AND deployment_id = ? AND delivery_id = ? AND webhook_id IN (
       SELECT webhook_id FROM webhooks
       WHERE organization_id = ? AND deployment_id = ? AND disabled_at_ms IS NULL)
     RETURNING webhook_id`,
    organizationId,
    deploymentId,
    deliveryId,
    organizationId,
    deploymentId,
  );
  const [webhook] =
    delivery === undefined
      ? []
      : yield* query<{ webhook_id: string; name: string }>(
          `UPDATE webhooks SET paused_until_ms = 0 WHERE deployment_id = ? AND webhook_id = ?
           RETURNING webhook_id, name`,
          deploymentId,
          delivery.webhook_id,
        );
  if (webhook === undefined) {
    const [disabled] = yield* query<{ name: string; reason: string | null }>(
      `SELECT w.name, w.disabled_reason AS reason FROM webhook_deliveries d JOIN webhooks w
         ON w.deployment_id = d.deployment_id AND w.webhook_id = d.webhook_id
       WHERE d.organization_id = ? AND d.deployment_id = ? AND d.delivery_id = ?`,
      organizationId,
      deploymentId,
      deliveryId,
    );
    const { name = "", reason } = disabled ?? {};
    return disabled && { outcome: "disabled", name, reason: reason ?? "" };
  }
  yield* record(parameters, organizationId, {
    action: actionOf(parameters, "redeliver"),
    subjectId: webhook.webhook_id,
    subject: webhook.name,
    details: { delivery: deliveryId },
  });
  const changed = yield* getDelivery(parameters);
  return changed && { outcome: "again", delivery: changed };
}

export function* getDelivery({
  organizationId,
  deploymentId,
  deliveryId,
}: Parameters<HostingStorage["getDelivery"]>[0]): Operation<DeliveryRecord | undefined> {
  const [row] = yield* query<DeliveryRow>(
    `SELECT ${COLUMNS}, d.body FROM webhook_deliveries d
     WHERE d.organization_id = ? AND d.deployment_id = ? AND d.delivery_id = ?`,
    organizationId,
    deploymentId,
    deliveryId,
  );
  return row && toDelivery(row);
}

export function* listDeliveries({
  organizationId,
  deploymentId,
  webhook,
  taskId,
  state,
  limit,
  after,
}: Parameters<HostingStorage["listDeliveries"]>[0]): Operation<Page<DeliveryRecord>> {
  const [atMs, ...rest] = (after ?? "").split("/");
  const conditions: readonly (false | readonly [string, ...(string | number)[]])[] = [
    webhook !== undefined && [
      "d.webhook_id = (SELECT webhook_id FROM webhooks WHERE deployment_id = ? AND name = ?)",
      deploymentId,
      webhook,
    ],
    taskId !== undefined && ["d.task_id = ?", taskId],
    state !== undefined && ["d.state = ?", STATES.indexOf(state)],
    after !== undefined && [
      "(d.created_at_ms, d.delivery_id) < (?, ?)",
      Number(atMs),
      rest.join("/"),
    ],
  ];
  const given = conditions.filter((one) => one !== false);
  const rows = yield* query<DeliveryRow>(
    `SELECT ${COLUMNS} FROM webhook_deliveries d
     WHERE d.organization_id = ? AND d.deployment_id = ?
       ${given.map(([sql]) => `AND ${sql}`).join(" ")}
     ORDER BY d.created_at_ms DESC, d.delivery_id DESC LIMIT ?`,
    organizationId,
    deploymentId,
    ...given.flatMap(([, ...values]) => values),
    limit + 1,
  );
  return toPage(
    rows.map(toDelivery),
    limit,
    ({ createdAtMs, deliveryId }) => `${createdAtMs}/${deliveryId}`,
  );
}

export function* usesWebhooks(): Operation<boolean> {
  const rows = yield* query(
    `SELECT 1 AS there WHERE EXISTS (SELECT 1 FROM webhooks)
       OR EXISTS (SELECT 1 FROM webhook_deliveries)`,
  );
  return rows.length > 0;
}

interface DueRow {
  readonly organization_id: string;
  readonly organization: string;
  readonly deployment_id: string;
  readonly deployment: string | null;
  readonly webhook_id: string;
  readonly name: string;
  readonly kind: ReceiverKind;
  readonly url: string;
  readonly sealed: string;
  readonly failures: number;
}

export function* takeDeliveries({
  claim,
  nowMs,
  ttlMs,
  limit,
  perWebhook,
  withoutOrganizations,
  withoutWebhooks,
}: Parameters<HostingStorage["takeDeliveries"]>[0]): Operation<TakenDelivery[]> {
  const without = [
    ["w.organization_id", withoutOrganizations],
    ["w.webhook_id", withoutWebhooks],
  ] as const;
  const webhooks = yield* query<DueRow>(
    `SELECT w.organization_id, o.name AS organization, w.deployment_id, p.name AS deployment,
       w.webhook_id, w.name, w.kind, w.url, w.sealed, w.failures
     FROM webhooks w JOIN organizations o ON o.organization_id = w.organization_id
       LEFT JOIN deployments p ON p.organization_id = w.organization_id
         AND p.deployment_id = w.deployment_id
     WHERE w.disabled_at_ms IS NULL AND w.paused_until_ms <= ?
       ${without.map(([column, ids]) => (ids.length === 0 ? "" : `AND ${column} NOT IN ${placeholders(1, ids.length)}`)).join(" ")}
       AND EXISTS (SELECT 1 FROM webhook_deliveries d
         WHERE d.webhook_id = w.webhook_id AND d.state = 0 AND d.next_at_ms <= ?)
     ORDER BY w.failures, w.webhook_id LIMIT ?`,
    nowMs,
    ...without.flatMap(([, ids]) => ids),
    nowMs,
    limit,
  );
  const taken: TakenDelivery[] = [];
  for (const webhook of webhooks) {
    const room = Math.min(limit - taken.length, webhook.failures > 0 ? 1 : perWebhook);
    if (room > 0) {
      taken.push(...(yield* takeOf(webhook, { claim, nowMs, ttlMs, limit: room })));
    }
  }
  return taken;
}

function* takeOf(
  webhook: DueRow,
  { claim, nowMs, ttlMs, limit }: Record<"nowMs" | "ttlMs" | "limit", number> & { claim: string },
): Operation<TakenDelivery[]> {
  // The condition is repeated: another node may have taken one since it was read.
  const rows = yield* query<DeliveryRow>(
    `UPDATE webhook_deliveries SET claim = ?, next_at_ms = ?
     WHERE deployment_id = ? AND state = 0 AND next_at_ms <= ? AND delivery_id IN (
       SELECT delivery_id FROM webhook_deliveries
       WHERE webhook_id = ? AND state = 0 AND next_at_ms <= ? ORDER BY next_at_ms LIMIT ?)
     RETURNING delivery_id, event, task_id, endpoint, created_at_ms, attempts, answers, body`,
    claim,
    nowMs + ttlMs,
    webhook.deployment_id,
    nowMs,
    webhook.webhook_id,
    nowMs,
    limit,
  );
  const taken: TakenDelivery[] = [];
  for (const row of rows) {
    taken.push({
      organizationId: webhook.organization_id,
      organization: webhook.organization,
      deploymentId: webhook.deployment_id,
      deployment: webhook.deployment ?? "",
      webhookId: webhook.webhook_id,
      webhook: webhook.name,
      kind: webhook.kind,
      url: webhook.url,
      sealed: webhook.sealed,
      deliveryId: row.delivery_id,
      end: endOf(row.event),
      taskId: row.task_id,
      endpoint: row.endpoint,
      createdAtMs: row.created_at_ms,
      attempts: row.attempts,
      answers: JSON.parse(row.answers) as DeliveryAnswer[],
      body: row.body ?? undefined,
      task: row.body ? undefined : yield* endedTask(webhook.deployment_id, row.task_id),
    });
  }
  return taken;
}

interface TaskRow {
  readonly created_at_ms: number;
  readonly started_at_ms: number | null;
  readonly finished_at_ms: number;
  readonly attempt: number;
  readonly retry_of: string | null;
  readonly failure: string | null;
  readonly result: string | null;
  readonly tags: string | null;
}

/** The task of a delivery, as it ended; undefined for one that is not there. */
export function* endedTask(deploymentId: string, taskId: string): Operation<EndedTask | undefined> {
  const [row] = yield* query<TaskRow>(
    `SELECT created_at_ms, started_at_ms, finished_at_ms, attempt, retry_of, failure, result,
       tags
     FROM tasks WHERE deployment_id = ? AND task_id = ? AND finished_at_ms IS NOT NULL`,
    deploymentId,
    taskId,
  );
  if (row === undefined) {
    return undefined;
  }
  const parts =
    row.result === null
      ? yield* query<{ bytes: number; blob_id: string | null; head: string | null }>(
          `SELECT length(data) AS bytes, blob_id, head FROM payload_parts
           WHERE deployment_id = ? AND task_id = ? AND side = 'result' AND part < 2`,
          deploymentId,
          taskId,
        )
      : [];
  const [part] = parts;
  const isText = parts.length === 1 && part?.blob_id === null && part.head === null;
  return {
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms ?? undefined,
    finishedAtMs: row.finished_at_ms,
    attempt: row.attempt,
    retryOf: row.retry_of ?? undefined,
    tags: row.tags ?? undefined,
    failure: row.failure ?? undefined,
    result: row.result ?? undefined,
    resultBytes: isText ? part.bytes : undefined,
  };
}

export function* recordDelivery(
  parameters: Parameters<HostingStorage["recordDelivery"]>[0],
): Operation<boolean> {
  const { deploymentId, webhookId, deliveryId, claim, nowMs, state, pausesMs } = parameters;
  const recorded = yield* query(
    `UPDATE webhook_deliveries SET state = ?, attempts = attempts + 1, next_at_ms = ?, claim = '',
       answers = ?, body = ?
     WHERE deployment_id = ? AND delivery_id = ? AND claim = ? AND state = 0
     RETURNING delivery_id`,
    STATES.indexOf(state),
    nowMs + parameters.nextInMs,
    JSON.stringify(parameters.answers),
    parameters.body,
    deploymentId,
    deliveryId,
    claim,
  );
  if (recorded.length === 0) {
    return false;
  }
  const ofWebhook = "deployment_id = ? AND webhook_id = ?";
  if (pausesMs.length === 0) {
    // Where nothing had failed, nothing is written.
    yield* query(
      `UPDATE webhooks SET failures = 0, paused_until_ms = 0 WHERE ${ofWebhook} AND failures > 0`,
      deploymentId,
      webhookId,
    );
    return true;
  }
  const [failed] = yield* query<{ failures: number }>(
    `UPDATE webhooks SET failures = failures + 1 WHERE ${ofWebhook} RETURNING failures`,
    deploymentId,
    webhookId,
  );
  const pauseMs = pausesMs[Math.min(failed?.failures ?? 0, pausesMs.length) - 1] ?? 0;
  if (pauseMs > 0) {
    yield* query(
      `UPDATE webhooks SET paused_until_ms = ? WHERE ${ofWebhook}`,
      nowMs + pauseMs,
      deploymentId,
      webhookId,
    );
  }
  if (parameters.disable !== undefined) {
    yield* query(
      `UPDATE webhooks SET disabled_at_ms = ?, disabled_reason = ?
       WHERE ${ofWebhook} AND disabled_at_ms IS NULL`,
      nowMs,
      parameters.disable,
      deploymentId,
      webhookId,
    );
  }
  return true;
}

export function* pruneDeliveries({
  nowMs,
  fromMs = 0,
  beforeMs,
  limit,
  maxWaiting,
  maxWaitingFailed,
}: Parameters<HostingStorage["pruneDeliveries"]>[0]): Operation<
  Awaited<ReturnType<HostingStorage["pruneDeliveries"]>>
> {
  const gone = yield* query<Pick<DeliveryRow, "created_at_ms">>(
    `DELETE FROM webhook_deliveries WHERE (deployment_id, delivery_id) IN (
       SELECT deployment_id, delivery_id FROM webhook_deliveries
       WHERE created_at_ms >= ? AND created_at_ms < ? ORDER BY created_at_ms LIMIT ?)
     RETURNING created_at_ms`,
    fromMs,
    beforeMs,
    limit,
  );
  for (const [failures, max] of [
    [1, maxWaitingFailed],
    [0, maxWaiting],
  ] as const) {
    yield* query(
      `UPDATE webhooks SET disabled_at_ms = ?, disabled_reason = ?
       WHERE disabled_at_ms IS NULL AND failures >= ? AND EXISTS (
         SELECT 1 FROM webhook_deliveries d
         WHERE d.webhook_id = webhooks.webhook_id AND d.state = 0
         ORDER BY d.next_at_ms LIMIT 1 OFFSET ?)`,
      nowMs,
      `more than ${max} deliveries wait for it`,
      failures,
      max,
    );
  }
  const reachedMs = gone.reduce((last, { created_at_ms: atMs }) => Math.max(last, atMs), fromMs);
  return { deleted: gone.length, reachedMs };
}
