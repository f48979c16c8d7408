/** Webhooks of deployments: registered, changed, rotated and deleted. */
import type { AuditAction } from "../../accounts/audit.ts";
import type { Page } from "../../accounts/page.ts";
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  DeliveryAnswer,
  FailingWebhook,
  ReceiverKind,
  SealedWebhook,
  TaskEnd,
  WebhookRecord,
  WebhookSettings,
  WebhookStorage,
} from "../../hosting/webhooks.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, query } from "../operation.ts";

/** Deliveries that wait are counted up to this many. */
const MAX_COUNTED_WAITING = 1_000;
/** Deliveries of a failing webhook that are looked at for its answer, in each of two orders. */
const MAX_SEARCHED_DELIVERIES = 200;

/** The numbers by which both databases store how tasks end, as in `stored.ts`. */
const STATUS = { success: 3, failure: 4, cancelled: 5 } as const;

const ENDS: readonly TaskEnd[] = ["success", "failure", "cancelled"];

/** The end of a stored number; undefined for that of a test. */
export function endOf(event: number): TaskEnd | undefined {
  return ENDS.find((end) => STATUS[end] === event);
}

/**
 * SQL that finds a message which the task `task` is still needed for: a webhook waits to hear of
 * its end, and the message is not made. Its offset has Postgres ask for each task by the index, and
 * not read all deliveries at once.
 */
export function untold(task: string): string {
  return `SELECT 1 FROM webhook_deliveries d JOIN webhooks w
      ON w.deployment_id = d.deployment_id AND w.webhook_id = d.webhook_id
    WHERE d.deployment_id = ${task}.deployment_id AND d.task_id = ${task}.task_id
      AND d.state = 0 AND d.body IS NULL LIMIT 1 OFFSET 0`;
}

/**
 * SQL: whether a webhook `w` hears of a task. The values are SQL for the status that it ends with,
 * its endpoint, and the webhook that its submit has named.
 */
export function isTold(task: {
  readonly status: string;
  readonly endpoint: string;
  readonly webhook: string;
}): string {
  return `w.disabled_at_ms IS NULL AND ((w.events >> ${task.status}) & 1) = 1
    AND (w.endpoint = '' OR w.endpoint = ${task.endpoint})
    AND (w.named_only = 0 OR w.name = ${task.webhook})`;
}

/** The columns that an end of a task writes; the others have defaults. */
export const TOLD_COLUMNS =
  "organization_id, deployment_id, webhook_id, delivery_id, event, endpoint, task_id, created_at_ms";

interface WebhookRow {
  readonly name: string;
  readonly webhook_id: string;
  readonly url: string;
  readonly events: number;
  readonly endpoint: string;
  readonly named_only: number;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly disabled_at_ms: number | null;
  readonly disabled_reason: string | null;
  readonly failures: number;
  readonly paused_until_ms: number;
  readonly rotated_until_ms: number;
  readonly kind: ReceiverKind;
  readonly waiting: number;
  readonly version: number;
}

const COLUMNS = `w.name, w.webhook_id, w.url, w.events, w.endpoint, w.named_only,
    w.created_at_ms, w.created_by, w.disabled_at_ms, w.disabled_reason, w.failures,
    w.paused_until_ms, w.rotated_until_ms, w.kind, w.version,
    (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries d
       WHERE d.webhook_id = w.webhook_id AND d.state = 0 LIMIT ${MAX_COUNTED_WAITING}) AS counted
    ) AS waiting`;

const SELECT = `SELECT ${COLUMNS} FROM webhooks w`;

function toWebhook(row: WebhookRow): WebhookRecord {
  const { disabled_at_ms: atMs, disabled_reason: reason } = row;
  return {
    name: row.name,
    webhookId: row.webhook_id,
    kind: row.kind,
    url: row.url,
    ends: ENDS.filter((end) => ((row.events >> STATUS[end]) & 1) === 1),
    endpoint: row.endpoint,
    namedOnly: row.named_only === 1,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    disabled: atMs === null ? undefined : { atMs, reason: reason ?? "" },
    failures: row.failures,
    pausedUntilMs: row.paused_until_ms,
    rotatedUntilMs: row.rotated_until_ms,
    waiting: row.waiting,
    version: row.version,
  };
}

function eventsOf(ends: readonly TaskEnd[]): number {
  return ends.reduce((bits, end) => bits | (1 << STATUS[end]), 0);
}

/** What the audit log says of a webhook; its address without what may be a secret in it. */
function detailsOf({ url, ends, endpoint, namedOnly }: WebhookSettings) {
  const { origin, protocol } = new URL(url);
  return {
    address: protocol === "mailto:" ? url : origin,
    ...(ends.length > 0 && { events: ends.map((end) => `task.${end}`).join(" ") }),
    ...(endpoint !== "" && { endpoint }),
    ...(namedOnly && { named_only: "true" }),
  };
}

/** Whether it is a receiver of alerts, and so no deployment's. */
function isReceiver({ organizationId, deploymentId }: DeploymentKey): boolean {
  return deploymentId === organizationId;
}

/** What was done to a webhook or a receiver of alerts, as the audit log calls it. */
export function actionOf(
  key: DeploymentKey,
  verb: "create" | "update" | "delete" | "rotate" | "test" | "redeliver",
): AuditAction {
  return `${isReceiver(key) ? "alert_receiver" : "webhook"}.${verb}`;
}

export function* createWebhook(
  parameters: Parameters<HostingStorage["createWebhook"]>[0],
): Operation<Awaited<ReturnType<WebhookStorage["createWebhook"]>>> {
  const { organizationId, deploymentId, name, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const deployment = yield* query(
    "SELECT 1 AS there FROM deployments WHERE organization_id = ? AND deployment_id = ?",
    organizationId,
    deploymentId,
  );
  if (deployment.length === 0 && !isReceiver(parameters)) {
    return { outcome: "not_found" };
  }
  const there = yield* listWebhooks(parameters);
  if (there.some((each) => each.name === name)) {
    return { outcome: "name_taken" };
  }
  if (there.length >= parameters.limit) {
    return { outcome: "limit" };
  }
  yield* query(
    `INSERT INTO webhooks (organization_id, deployment_id, name, webhook_id, url, events, endpoint,
       named_only, sealed, kind, created_at_ms, created_by)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    organizationId,
    deploymentId,
    name,
    parameters.webhookId,
    parameters.url,
    eventsOf(parameters.ends),
    parameters.endpoint,
    parameters.namedOnly,
    parameters.sealed,
    parameters.kind ?? "webhook",
    nowMs,
    parameters.by.name,
  );
  yield* record(parameters, organizationId, {
    ...{ action: actionOf(parameters, "create"), subjectId: parameters.webhookId, subject: name },
    details: detailsOf(parameters),
  });
  // Nodes that had no webhook to look after begin to.
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  const webhook = yield* findWebhook(parameters);
  if (webhook === undefined) {
    throw new Error("the webhook that was just stored is not there");
  }
  return { outcome: "created", webhook };
}

export function* listWebhooks({
  organizationId,
  deploymentId,
}: DeploymentKey): Operation<WebhookRecord[]> {
  const rows = yield* query<WebhookRow>(
    `${SELECT} WHERE w.organization_id = ? AND w.deployment_id = ? ORDER BY w.name`,
    organizationId,
    deploymentId,
  );
  return rows.map(toWebhook);
}

type FailingRow = WebhookRow & {
  readonly deployment_id: string;
  readonly deployment: string;
  readonly requires_token: number;
  readonly answers: string | null;
};

/**
 * The newest delivery that was tried and not delivered. It is among the newest ones, or among those
 * that are sent again; a backlog of any size, which was never tried (`next_at_ms` is 0), is not read.
 */
const FAILED = `SELECT d.answers FROM (
    SELECT * FROM (SELECT state, answers, created_at_ms, delivery_id FROM webhook_deliveries
      WHERE webhook_id = w.webhook_id
      ORDER BY created_at_ms DESC, delivery_id DESC LIMIT ${MAX_SEARCHED_DELIVERIES}) AS newest
    UNION ALL
    SELECT * FROM (SELECT state, answers, created_at_ms, delivery_id FROM webhook_deliveries
      WHERE webhook_id = w.webhook_id AND state = 0 AND next_at_ms > 0
      ORDER BY next_at_ms DESC LIMIT ${MAX_SEARCHED_DELIVERIES}) AS tried
  ) AS d
  WHERE d.state <> 1 AND d.answers <> '[]'
  ORDER BY d.created_at_ms DESC, d.delivery_id DESC LIMIT 1`;

/** The deployments leave out receivers of alerts, which are no deployment's. */
const FAILING = `SELECT ${COLUMNS},
    w.deployment_id, p.name AS deployment, p.requires_token, (${FAILED}) AS answers
  FROM webhooks w
    JOIN deployments p ON p.organization_id = w.organization_id AND p.deployment_id = w.deployment_id
  WHERE w.organization_id = ? AND w.failures > 0
  ORDER BY p.name, w.name LIMIT ?`;

export function* listFailingWebhooks({
  organizationId,
  limit,
}: Parameters<WebhookStorage["listFailingWebhooks"]>[0]): Operation<FailingWebhook[]> {
  const rows = yield* query<FailingRow>(FAILING, organizationId, limit);
  return rows.map((row) => ({
    deployment: { deploymentId: row.deployment_id, name: row.deployment },
    authorization: row.requires_token === 1,
    webhook: toWebhook(row),
    answer: (JSON.parse(row.answers ?? "[]") as DeliveryAnswer[]).at(-1),
  }));
}

type Named = DeploymentKey & { readonly name: string };

function* findWebhook({
  organizationId,
  deploymentId,
  name,
}: Named): Operation<WebhookRecord | undefined> {
  const [row] = yield* query<WebhookRow>(
    `${SELECT} WHERE w.organization_id = ? AND w.deployment_id = ? AND w.name = ?`,
    organizationId,
    deploymentId,
    name,
  );
  return row && toWebhook(row);
}

export function* updateWebhook(
  parameters: Parameters<HostingStorage["updateWebhook"]>[0],
): Operation<Awaited<ReturnType<WebhookStorage["updateWebhook"]>>> {
  const { organizationId, deploymentId, name, nowMs, enabled, sealed } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findWebhook(parameters);
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const { version = before.version, webhookId = before.webhookId } = parameters;
  if (before.version !== version || before.webhookId !== webhookId) {
    return { outcome: "version_conflict" };
  }
  const { url = before.url, ends = before.ends } = parameters;
  const { endpoint = before.endpoint, namedOnly = before.namedOnly } = parameters;
  const isReset = enabled !== undefined || url !== before.url || sealed !== undefined;
  const disabled =
    enabled === false
      ? (before.disabled ?? { atMs: nowMs, reason: `disabled by ${parameters.by.name}` })
      : enabled === true
        ? undefined
        : before.disabled;
  yield* query(
    `UPDATE webhooks SET url = ?, events = ?, endpoint = ?, named_only = ?, disabled_at_ms = ?,
       disabled_reason = ?, failures = ?, paused_until_ms = ?, sealed = coalesce(?, sealed),
       version = version + 1
     WHERE deployment_id = ? AND name = ?`,
    url,
    eventsOf(ends),
    endpoint,
    namedOnly,
    disabled?.atMs,
    disabled?.reason,
    isReset ? 0 : before.failures,
    isReset ? 0 : before.pausedUntilMs,
    sealed,
    deploymentId,
    name,
  );
  yield* record(parameters, organizationId, {
    ...{ action: actionOf(parameters, "update"), subjectId: before.webhookId, subject: name },
    details: {
      ...detailsOf({ url, ends, endpoint, namedOnly }),
      ...(enabled !== undefined && { enabled: String(enabled) }),
    },
  });
  const webhook = yield* findWebhook(parameters);
  return webhook === undefined ? { outcome: "not_found" } : { outcome: "updated", webhook };
}

export function* deleteWebhook(
  parameters: Parameters<HostingStorage["deleteWebhook"]>[0],
): Operation<boolean> {
  const { organizationId, deploymentId, name } = parameters;
  yield* lockOrganization(organizationId);
  const [gone] = yield* query<{ webhook_id: string }>(
    `DELETE FROM webhooks WHERE organization_id = ? AND deployment_id = ? AND name = ?
     RETURNING webhook_id`,
    organizationId,
    deploymentId,
    name,
  );
  if (gone === undefined) {
    return false;
  }
  yield* record(parameters, organizationId, {
    action: actionOf(parameters, "delete"),
    subjectId: gone.webhook_id,
    subject: name,
  });
  return true;
}

interface SealedRow {
  readonly organization_id: string;
  readonly deployment_id: string;
  readonly webhook_id: string;
  readonly sealed: string;
}

const SEALED_COLUMNS = "organization_id, deployment_id, webhook_id, sealed";

function toSealed(row: SealedRow): SealedWebhook {
  const { organization_id: organizationId, deployment_id: deploymentId } = row;
  return { organizationId, deploymentId, webhookId: row.webhook_id, sealed: row.sealed };
}

export function* getSealedWebhook({
  organizationId,
  deploymentId,
  name,
}: Named): Operation<SealedWebhook | undefined> {
  const [row] = yield* query<SealedRow>(
    `SELECT ${SEALED_COLUMNS} FROM webhooks
     WHERE organization_id = ? AND deployment_id = ? AND name = ?`,
    organizationId,
    deploymentId,
    name,
  );
  return row && toSealed(row);
}

export function* rotateWebhook(
  parameters: Parameters<HostingStorage["rotateWebhook"]>[0],
): Operation<WebhookRecord | undefined> {
  const { organizationId, deploymentId, name, from, to, rotatedUntilMs } = parameters;
  yield* lockOrganization(organizationId);
  const [rotated] = yield* query<{ webhook_id: string }>(
    `UPDATE webhooks SET sealed = ?, rotated_until_ms = ?
     WHERE organization_id = ? AND deployment_id = ? AND name = ? AND sealed = ?
     RETURNING webhook_id`,
    to,
    rotatedUntilMs,
    organizationId,
    deploymentId,
    name,
    from,
  );
  if (rotated === undefined) {
    return undefined;
  }
  const graceMs = Math.max(0, rotatedUntilMs - parameters.nowMs);
  yield* record(parameters, organizationId, {
    ...{ action: actionOf(parameters, "rotate"), subjectId: rotated.webhook_id, subject: name },
    details: { grace_seconds: String(graceMs / 1_000) },
  });
  return yield* findWebhook(parameters);
}

export function* listSealedWebhooks({
  limit,
  after = "/",
}: Parameters<HostingStorage["listSealedWebhooks"]>[0]): Operation<Page<SealedWebhook>> {
  const rows = yield* query<SealedRow>(
    `SELECT ${SEALED_COLUMNS} FROM webhooks WHERE (deployment_id, webhook_id) > (?, ?)
     ORDER BY deployment_id, webhook_id LIMIT ?`,
    ...after.split("/"),
    limit + 1,
  );
  return toPage(
    rows.map(toSealed),
    limit,
    ({ deploymentId, webhookId }) => `${deploymentId}/${webhookId}`,
  );
}

export function* replaceSealedWebhook({
  deploymentId,
  webhookId,
  from,
  to,
}: Parameters<HostingStorage["replaceSealedWebhook"]>[0]): Operation<void> {
  yield* query(
    "UPDATE webhooks SET sealed = ? WHERE deployment_id = ? AND webhook_id = ? AND sealed = ?",
    to,
    deploymentId,
    webhookId,
    from,
  );
}
