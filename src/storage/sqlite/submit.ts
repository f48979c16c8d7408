/** Stores one task, with idempotency. */
import type { NewTask, SubmitOutcome } from "../storage.ts";
import { asStored, keyHeldBy, payloadBytes, previewOf, tagsText } from "../stored.ts";
import type { SqliteDatabase } from "./database.ts";
import { isLeaseOpen } from "./leases.ts";
import { hasBlobs, isInline, writePayload } from "./payloads.ts";
import { readTask } from "./read.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { hasWebhook, webhookOfRetried } from "./webhooks.ts";

/**
 * Stores a task, unless its idempotency key or its id was stored before.
 * `claimed` is set for a task that was stored just now.
 */
export function submitTask(
  db: SqliteDatabase,
  task: NewTask,
): SubmitOutcome & { readonly claimed?: boolean } {
  const { deploymentId, endpoint, idempotency } = task;
  if (idempotency) {
    const earlier = db.get(
      `SELECT task_id, digest FROM idempotency_keys
       WHERE deployment_id = ? AND endpoint = ? AND key = ?`,
      deploymentId,
      endpoint,
      idempotency.key,
    );
    const held = earlier && heldKey(db, task, earlier);
    if (held) {
      return held;
    }
  }
  if (task.arguments.files.length > 0 && !hasBlobs(db, task.arguments)) {
    const stored = readTask(db, task);
    return stored ? { outcome: "stored", task: stored } : { outcome: "blobs_gone" };
  }
  if (task.webhook !== undefined && !hasWebhook(db, deploymentId, task.webhook)) {
    return { outcome: "webhook_unknown" };
  }
  const claimed =
    task.leaseId !== undefined &&
    isLeaseOpen(db, task.leaseId) &&
    !db.pausedEndpoints.has(deploymentId, endpoint);
  const queued = db.counts.queued(deploymentId, endpoint);
  if (!claimed && queued >= task.queueLimit) {
    const stored = readTask(db, task);
    return stored ? { outcome: "stored", task: stored } : { outcome: "queue_full", queued };
  }
  if (!insert(db, task, claimed)) {
    return repeated(db, task);
  }
  db.counts.add(deploymentId, endpoint, claimed ? { running: 1 } : { queued: 1 });
  const stored = asStored(task, claimed);
  const { tokenId = "", retentionMs, createdAtMs } = task;
  const bytesIn = payloadBytes(task.arguments);
  db.usage.add({ deploymentId, endpoint, tokenId, nowMs: createdAtMs, tasks: 1, bytesIn });
  db.live.remember({ task: stored, retentionMs, tokenId });
  return { outcome: "stored", task: stored, claimed };
}

/** The outcome where the key of a task is held by an earlier one; undefined where it is free. */
function heldKey(db: SqliteDatabase, task: NewTask, earlier: SqliteRow): SubmitOutcome | undefined {
  const own = readTask(db, task);
  if (own) {
    return { outcome: "stored", task: own };
  }
  const { deploymentId } = task;
  const found = readTask(db, { deploymentId, taskId: String(earlier.task_id) });
  if (found === undefined) {
    throw new Error(`the key of task ${earlier.task_id} outlived it`);
  }
  switch (keyHeldBy(found, String(earlier.digest), task)) {
    case "replayed":
      return { outcome: "replayed", task: found };
    case "key_reused":
      return { outcome: "key_reused" };
    case "free":
      return undefined;
  }
}

/** A repeated call whose first answer was lost: returns the stored task. */
function repeated(db: SqliteDatabase, task: NewTask): SubmitOutcome {
  const found = readTask(db, task);
  if (found === undefined) {
    throw new Error(`task ${task.taskId} was neither stored nor there`);
  }
  return { outcome: "stored", task: found };
}

/** Inserts the task with its payload and key; false when its id exists already. */
function insert(db: SqliteDatabase, task: NewTask, claimed: boolean): boolean {
  const { deploymentId, taskId, idempotency } = task;
  const waiting = task.runAtMs > task.createdAtMs ? STATUS.scheduled : STATUS.ready;
  const inline = isInline(task.arguments);
  const inserted = db.run(
    `INSERT INTO tasks (deployment_id, task_id, endpoint, status, priority, run_at_ms,
       start_by_ms, created_at_ms, started_at_ms, expires_at_ms, retention_ms, attempt, lease_id,
       started_sequence, last_sequence, retry_of, idempotency_key, trace, arguments,
       arguments_preview, webhook, key, token_id, tags)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
    deploymentId,
    taskId,
    task.endpoint,
    claimed ? STATUS.running : waiting,
    task.priority,
    task.runAtMs,
    task.startByMs ?? null,
    task.createdAtMs,
    claimed ? task.createdAtMs : null,
    task.expiresAtMs,
    task.retentionMs,
    claimed ? 1 : 0,
    claimed ? (task.leaseId ?? null) : null,
    claimed ? 2 : 0,
    claimed ? 2 : 1,
    task.retryOf ?? null,
    idempotency?.key ?? null,
    task.trace ?? null,
    inline ? task.arguments.json : null,
    inline ? null : previewOf(task.arguments),
    task.webhook ?? webhookOfRetried(db, task),
    task.key ?? null,
    task.tokenId ?? null,
    tagsText(task.tags),
  );
  if (inserted === 0) {
    return false;
  }
  if (!inline) {
    writePayload(db, { deploymentId, taskId, side: "arguments" }, task.arguments);
  }
  if (idempotency) {
    db.run(
      `INSERT INTO idempotency_keys (deployment_id, endpoint, key, digest, task_id)
       VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (deployment_id, endpoint, key)
       DO UPDATE SET digest = excluded.digest, task_id = excluded.task_id`,
      deploymentId,
      task.endpoint,
      idempotency.key,
      idempotency.digest,
      taskId,
    );
  }
  return true;
}
