/**
 * The SQLite schema as forward-only migrations. Every key begins with the
 * deployment.
 *
 * One table holds a task for its whole life. Partial indexes make claims cheap:
 * `tasks_ready` holds only the tasks that can be claimed now, however many have
 * finished. (SQLite updates in place and leaves no dead rows behind, so a
 * second table for history would only cost another statement per task.)
 */

import { expand, type Migration } from "../migration.ts";
import {
  accountsSchema,
  monitoringRequestsSchema,
  operatorsSchema,
  sessionUsesSchema,
  verifiedAddressesSchema,
  workerTokensSchema,
} from "../sql/accounts/schema.ts";
import {
  confirmationSchema,
  hostingSchema,
  logLevelsSchema,
  nodeFactsSchema,
  placementSchema,
  queueTimeSchema,
  retentionSchema,
} from "../sql/hosting/schema.ts";
import { historySchema, metricsSchema } from "../sql/metrics/schema.ts";

/** How `tasks.status` is stored. A queued task that is not yet due is `scheduled`. */
export const STATUS = {
  scheduled: 0,
  ready: 1,
  running: 2,
  success: 3,
  failure: 4,
  cancelled: 5,
} as const;

/**
 * The migrations, in their order. A released one never changes: digests of all of them are in
 * `test/storage/migrations.json`. CONTRIBUTING.md says how one is added.
 */
export const MIGRATIONS: readonly Migration[] = [
  expand(
    "tasks",
    `
  CREATE TABLE tasks (
    deployment_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at_ms INTEGER NOT NULL,
    start_by_ms INTEGER,
    created_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    expires_at_ms INTEGER NOT NULL,
    retention_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failed_attempts INTEGER NOT NULL DEFAULT 0,
    lost_workers INTEGER NOT NULL DEFAULT 0,
    lease_id TEXT,
    abort_requested INTEGER NOT NULL DEFAULT 0,
    started_sequence INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    progress_fraction REAL,
    progress_message TEXT,
    retry_of TEXT,
    idempotency_key TEXT,
    failure TEXT,
    arguments TEXT,
    result TEXT,
    PRIMARY KEY (deployment_id, task_id)
  ) WITHOUT ROWID;
  CREATE INDEX tasks_ready ON tasks (deployment_id, endpoint, priority DESC, run_at_ms, task_id)
    WHERE status = 1;
  CREATE INDEX tasks_scheduled ON tasks (deployment_id, run_at_ms) WHERE status = 0;
  CREATE INDEX tasks_start_by ON tasks (start_by_ms)
    WHERE status <= 1 AND start_by_ms IS NOT NULL;
  CREATE INDEX tasks_leased ON tasks (lease_id) WHERE status = 2;
  CREATE INDEX tasks_expiry ON tasks (expires_at_ms) WHERE status >= 3;

  -- Arguments and results that are files, or too large to stand in the row.
  -- part 0 is the JSON text, parts from 1 are the files it refers to.
  CREATE TABLE payload_parts (
    deployment_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    side TEXT NOT NULL,
    part INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    filename TEXT,
    data BLOB NOT NULL,
    PRIMARY KEY (deployment_id, task_id, side, part)
  );

  CREATE TABLE task_events (
    deployment_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (deployment_id, task_id, sequence)
  ) WITHOUT ROWID;

  CREATE TABLE idempotency_keys (
    deployment_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (deployment_id, endpoint, key)
  ) WITHOUT ROWID;

  CREATE TABLE leases (
    lease_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE queue_counts (
    deployment_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    PRIMARY KEY (deployment_id, endpoint)
  ) WITHOUT ROWID;
  `,
  ),
  expand(
    "large files",
    `
  -- Files that stand in the blob store. A row is there before the bytes are,
  -- and until after they are gone: nothing can be forgotten there.
  CREATE TABLE blobs (
    blob_id TEXT NOT NULL PRIMARY KEY,
    -- How many rows of payload_parts name it.
    reference_count INTEGER NOT NULL,
    -- When it may be deleted; null while anything names it.
    delete_after_ms INTEGER,
    -- Its bytes are being deleted: nothing may name it any more.
    dying INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX blobs_dead ON blobs (delete_after_ms) WHERE delete_after_ms IS NOT NULL;
  -- A part that is a blob has no data of its own.
  ALTER TABLE payload_parts ADD COLUMN blob_id TEXT;
  ALTER TABLE payload_parts ADD COLUMN blob_bytes INTEGER;
  ALTER TABLE payload_parts ADD COLUMN blob_sha256 TEXT;
  `,
  ),
  expand("accounts", accountsSchema("text")),
  expand(
    "hosting",
    `
  ${hostingSchema("text")}
  -- Tasks that wait or run.
  CREATE VIEW live_tasks AS SELECT deployment_id, task_id, status FROM tasks WHERE status <= 2;
  `,
  ),
  expand("metrics", metricsSchema("text")),
  expand(
    "traces",
    `
  -- The trace that the attempts of a task belong to; null for nearly all.
  ALTER TABLE tasks ADD COLUMN trace TEXT;
  `,
  ),
  expand(
    "due tasks by endpoint",
    `
  -- Whether anything of an endpoint is due, without reading what is due of the others.
  CREATE INDEX tasks_scheduled_by_endpoint
    ON tasks (deployment_id, endpoint, run_at_ms) WHERE status = 0;
  `,
  ),
  expand("secrets of revisions", confirmationSchema("text")),
  expand("verified addresses", verifiedAddressesSchema()),
  expand(
    "network of deployments",
    `
  -- Where the workers of a deployment may connect to: access and hosts, as JSON.
  ALTER TABLE deployments ADD COLUMN network text NOT NULL
    DEFAULT '{"access":"open","hosts":[]}';
  `,
  ),
  expand(
    "attempts of tasks",
    `
  -- Attempts that went back to the queue, as a JSON array; null for nearly all tasks.
  ALTER TABLE tasks ADD COLUMN returned TEXT;
  -- Attempts whose lease ended before they did.
  ALTER TABLE tasks ADD COLUMN lost_nodes INTEGER NOT NULL DEFAULT 0;
  `,
  ),
  expand("metrics over time", historySchema("text")),
  expand(
    "unsuccessful tasks",
    `
  -- Failed and cancelled tasks by age, without reading the many that succeeded.
  CREATE INDEX tasks_unsuccessful ON tasks (deployment_id, task_id, status, endpoint)
    WHERE status >= 4;
  `,
  ),
  expand("uses of sessions", sessionUsesSchema("text")),
  expand("operators", operatorsSchema()),
  expand("facts of nodes", nodeFactsSchema("text")),
  expand("levels of log lines", logLevelsSchema("text")),
  expand(
    "streamed results",
    `
  -- Pieces of streamed results, several to a row (piece-runs.ts), until their task is deleted.
  CREATE TABLE task_pieces (
    deployment_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    -- Of the last piece of the row.
    last_sequence INTEGER NOT NULL,
    pieces INTEGER NOT NULL,
    form INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (deployment_id, task_id, attempt, last_sequence)
  );
  `,
  ),
  expand(
    "leases of workers on other machines",
    `
  -- Digest of the secret with which another node may adopt the lease; null: it ends with its node.
  ALTER TABLE leases ADD COLUMN session TEXT;
  `,
  ),
  expand("worker access of tokens", workerTokensSchema()),
  expand("placement of workers", placementSchema("text")),
  expand("queue time of deployments", queueTimeSchema()),
  expand("retention of deployments", retentionSchema("integer")),
  expand(
    "suspects",
    `
  -- True once the worker of an attempt died: it runs alone in a worker, until it has not ended one.
  ALTER TABLE tasks ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX tasks_suspect ON tasks (deployment_id, endpoint) WHERE suspect = 1 AND status = 1;
  `,
  ),
  expand(
    "heads of calls",
    `
  -- On the first part: the head of the request, or of the answer, as JSON; null for nearly all.
  ALTER TABLE payload_parts ADD COLUMN head TEXT;
  `,
  ),
  expand("requests for monitoring", monitoringRequestsSchema("text")),
];
