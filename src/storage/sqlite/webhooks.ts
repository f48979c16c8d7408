/** What the end of a task writes into the outbox of webhooks, in the transaction of the end. */
import { isTold, TOLD_COLUMNS } from "../sql/hosting/webhooks.ts";
import type { NewTask, TaskKey } from "../storage.ts";
import type { Statements } from "./rows.ts";

/**
 * A cache of the deployments that have webhooks: the ends of all others ask nothing. It is forgotten
 * when a webhook is created, and with the other caches of the database. One whose webhooks are gone
 * stays, which costs a statement for each end.
 */
export class WebhookOwners {
  readonly #db: Statements;
  #deployments: Set<string> | undefined;

  constructor(db: Statements) {
    this.#db = db;
  }

  has(deploymentId: string): boolean {
    this.#deployments ??= new Set(
      this.#db
        .all("SELECT DISTINCT deployment_id FROM webhooks")
        .map((row) => String(row.deployment_id)),
    );
    return this.#deployments.has(deploymentId);
  }

  forget(): void {
    this.#deployments = undefined;
  }
}

interface Outbox extends Statements {
  readonly webhookOwners: WebhookOwners;
}

const TELL = `INSERT INTO webhook_deliveries (${TOLD_COLUMNS})
  SELECT w.organization_id, w.deployment_id, w.webhook_id, t.task_id || '-' || w.name, t.status,
    t.endpoint, t.task_id, t.finished_at_ms
  FROM webhooks w JOIN tasks t ON t.deployment_id = w.deployment_id
  WHERE w.deployment_id = ? AND t.task_id = ?
    AND ${isTold({ status: "t.status", endpoint: "t.endpoint", webhook: "t.webhook" })}
  ON CONFLICT DO NOTHING`;

/** Adds a delivery for each webhook that hears of this end. */
export function tellOfEnd(db: Outbox, { deploymentId, taskId }: TaskKey): void {
  if (db.webhookOwners.has(deploymentId)) {
    db.run(TELL, deploymentId, taskId);
  }
}

/** The webhook that the task named which this one retries, where it is still there. */
export function webhookOfRetried(
  db: Outbox,
  { deploymentId, retryOf }: Pick<NewTask, "deploymentId" | "retryOf">,
): string | null {
  if (retryOf === undefined || !db.webhookOwners.has(deploymentId)) {
    return null;
  }
  const sql = `SELECT w.name FROM tasks t
    JOIN webhooks w ON w.deployment_id = t.deployment_id AND w.name = t.webhook
    WHERE t.deployment_id = ? AND t.task_id = ?`;
  const [found] = db.all(sql, deploymentId, retryOf);
  return found === undefined ? null : String(found.name);
}

export function hasWebhook(db: Outbox, deploymentId: string, name: string): boolean {
  const sql = "SELECT 1 FROM webhooks WHERE deployment_id = ? AND name = ?";
  return db.webhookOwners.has(deploymentId) && db.all(sql, deploymentId, name).length > 0;
}
