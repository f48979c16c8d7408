/**
 * The Postgres schema as forward-only migrations. All tables are in one schema.
 * Every key begins with the deployment.
 *
 * An update in Postgres writes a new row version and leaves the old one to
 * vacuum. So the few queued and running tasks are in `live_tasks`, with room in
 * its pages for new versions, and the many finished ones in `finished_tasks`,
 * which is written once per task. Claims never scan history. The view `tasks`
 * is the union; a task is in exactly one of the two, because it moves within
 * one statement.
 *
 * Ids compare byte by byte (`COLLATE "C"`), as everywhere in the platform. JSON
 * is stored as text: `jsonb` would not return exactly what was stored, and
 * neither type accepts U+0000.
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

/** How `status` is stored. A queued task that is not yet due is `scheduled`. */
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
  CREATE TABLE live_tasks (
    deployment_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    status smallint NOT NULL,
    priority integer NOT NULL,
    run_at_ms bigint NOT NULL,
    start_by_ms bigint,
    created_at_ms bigint NOT NULL,
    started_at_ms bigint,
    expires_at_ms bigint NOT NULL,
    retention_ms bigint NOT NULL,
    attempt integer NOT NULL,
    failed_attempts integer NOT NULL DEFAULT 0,
    lost_workers integer NOT NULL DEFAULT 0,
    -- Null unless the task runs.
    lease_id text COLLATE "C",
    abort_requested boolean NOT NULL DEFAULT false,
    -- Of the latest attempt, also after its return to the queue.
    started_sequence integer NOT NULL,
    last_sequence integer NOT NULL,
    progress text,
    retry_of text COLLATE "C",
    idempotency_key text COLLATE "C",
    arguments text,
    PRIMARY KEY (deployment_id, task_id)
  ) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
  CREATE INDEX live_tasks_ready
    ON live_tasks (deployment_id, endpoint, priority DESC, run_at_ms, task_id) WHERE status = 1;
  CREATE INDEX live_tasks_scheduled ON live_tasks (deployment_id, run_at_ms) WHERE status = 0;
  CREATE INDEX live_tasks_start_by ON live_tasks (start_by_ms)
    WHERE status <= 1 AND start_by_ms IS NOT NULL;
  CREATE INDEX live_tasks_leased ON live_tasks (lease_id) WHERE status = 2;

  CREATE TABLE finished_tasks (
    deployment_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    status smallint NOT NULL,
    created_at_ms bigint NOT NULL,
    started_at_ms bigint,
    finished_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    attempt integer NOT NULL,
    failed_attempts integer NOT NULL,
    -- Who ended it: tells the repetition of a call from a stale attempt.
    lease_id text COLLATE "C",
    started_sequence integer NOT NULL,
    last_sequence integer NOT NULL,
    progress text,
    retry_of text COLLATE "C",
    idempotency_key text COLLATE "C",
    failure text,
    arguments text,
    result text,
    PRIMARY KEY (deployment_id, task_id)
  );
  CREATE INDEX finished_tasks_expiry ON finished_tasks (expires_at_ms);

  CREATE VIEW tasks AS
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      NULL::bigint AS finished_at_ms, expires_at_ms, attempt, failed_attempts,
      CASE WHEN status = 2 THEN started_sequence ELSE 0 END AS started_sequence, last_sequence,
      progress, retry_of, NULL::text AS failure, arguments, NULL::text AS result
    FROM live_tasks
    UNION ALL
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      finished_at_ms, expires_at_ms, attempt, failed_attempts,
      started_sequence, last_sequence,
      progress, retry_of, failure, arguments, result
    FROM finished_tasks;

  -- Arguments and results that are files, or too large to stand in the row.
  -- part 0 is the JSON text, parts from 1 are the files it refers to; about is
  -- JSON text with the type and name of each.
  CREATE TABLE payload_parts (
    deployment_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    side text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    about text NOT NULL,
    data bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (deployment_id, task_id, side, part)
  );

  CREATE TABLE task_events (
    deployment_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    sequence integer NOT NULL,
    time_ms bigint NOT NULL,
    attempt integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (deployment_id, task_id, sequence)
  );

  CREATE TABLE idempotency_keys (
    deployment_id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (deployment_id, endpoint, key)
  );

  CREATE TABLE leases (
    lease_id text COLLATE "C" NOT NULL PRIMARY KEY,
    owner text NOT NULL,
    expires_at_ms bigint NOT NULL
  ) WITH (fillfactor = 50);

  CREATE TABLE queue_counts (
    deployment_id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    queued bigint NOT NULL,
    running bigint NOT NULL,
    PRIMARY KEY (deployment_id, endpoint)
  ) WITH (fillfactor = 50);
  CREATE TABLE queue_count_deltas (
    deployment_id text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    queued bigint NOT NULL,
    running bigint NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
  CREATE INDEX queue_count_deltas_by_endpoint ON queue_count_deltas (deployment_id, endpoint);
  `,
  ),
  expand(
    "large files",
    `
  -- Files that stand in the blob store. A row is there before the bytes are,
  -- and until after they are gone: nothing can be forgotten there.
  CREATE TABLE blobs (
    blob_id text COLLATE "C" NOT NULL PRIMARY KEY,
    -- How many rows of payload_parts name it.
    reference_count integer NOT NULL,
    -- When it may be deleted; null while anything names it.
    delete_after_ms bigint,
    -- Its bytes are being deleted: nothing may name it any more.
    dying boolean NOT NULL DEFAULT false
  );
  CREATE INDEX blobs_dead ON blobs (delete_after_ms) WHERE delete_after_ms IS NOT NULL;
  -- A part that is a blob has no data of its own; about has its size and digest.
  ALTER TABLE payload_parts ADD COLUMN blob_id text COLLATE "C";

  -- The blob store, where it is this database.
  CREATE TABLE blob_chunks (
    blob_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    data bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (blob_id, number)
  );
  `,
  ),
  expand("accounts", accountsSchema('text COLLATE "C"')),
  expand(
    "schedule of finished tasks",
    `
  -- What a task was submitted with is told after its end too.
  ALTER TABLE finished_tasks ADD COLUMN priority integer NOT NULL DEFAULT 0;
  ALTER TABLE finished_tasks ADD COLUMN run_at_ms bigint;
  ALTER TABLE finished_tasks ADD COLUMN start_by_ms bigint;
  UPDATE finished_tasks SET run_at_ms = created_at_ms;
  ALTER TABLE finished_tasks ALTER COLUMN run_at_ms SET NOT NULL;
  CREATE OR REPLACE VIEW tasks AS
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      NULL::bigint AS finished_at_ms, expires_at_ms, attempt, failed_attempts,
      CASE WHEN status = 2 THEN started_sequence ELSE 0 END AS started_sequence, last_sequence,
      progress, retry_of, NULL::text AS failure, arguments, NULL::text AS result,
      priority, run_at_ms, start_by_ms
    FROM live_tasks
    UNION ALL
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      finished_at_ms, expires_at_ms, attempt, failed_attempts,
      started_sequence, last_sequence,
      progress, retry_of, failure, arguments, result,
      priority, run_at_ms, start_by_ms
    FROM finished_tasks;
  `,
  ),
  expand("hosting", hostingSchema('text COLLATE "C"')),
  expand("metrics", metricsSchema('text COLLATE "C"', "UNLOGGED")),
  expand(
    "traces",
    `
  -- The trace that the attempts of a task belong to; null for nearly all.
  ALTER TABLE live_tasks ADD COLUMN trace text;
  ALTER TABLE finished_tasks ADD COLUMN trace text;
  CREATE OR REPLACE VIEW tasks AS
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      NULL::bigint AS finished_at_ms, expires_at_ms, attempt, failed_attempts,
      CASE WHEN status = 2 THEN started_sequence ELSE 0 END AS started_sequence, last_sequence,
      progress, retry_of, NULL::text AS failure, arguments, NULL::text AS result,
      priority, run_at_ms, start_by_ms, trace
    FROM live_tasks
    UNION ALL
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      finished_at_ms, expires_at_ms, attempt, failed_attempts,
      started_sequence, last_sequence,
      progress, retry_of, failure, arguments, result,
      priority, run_at_ms, start_by_ms, trace
    FROM finished_tasks;
  `,
  ),
  expand(
    "due tasks by endpoint",
    `
  -- Whether anything of an endpoint is due, without reading what is due of the others.
  CREATE INDEX live_tasks_scheduled_by_endpoint
    ON live_tasks (deployment_id, endpoint, run_at_ms) WHERE status = 0;
  `,
  ),
  expand("secrets of revisions", confirmationSchema('text COLLATE "C"')),
  expand("verified addresses", verifiedAddressesSchema()),
  expand(
    "network of deployments",
    `
  -- Where the workers of a deployment may connect to: access and hosts, as JSON.
  ALTER TABLE deployments ADD COLUMN network text COLLATE "C" NOT NULL
    DEFAULT '{"access":"open","hosts":[]}';
  `,
  ),
  expand(
    "attempts of tasks",
    `
  -- Attempts that went back to the queue, each as JSON; null for nearly all tasks.
  ALTER TABLE live_tasks ADD COLUMN returned text[];
  ALTER TABLE finished_tasks ADD COLUMN returned text[];
  -- Attempts whose lease ended before they did.
  ALTER TABLE live_tasks ADD COLUMN lost_nodes integer NOT NULL DEFAULT 0;
  CREATE OR REPLACE VIEW tasks AS
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      NULL::bigint AS finished_at_ms, expires_at_ms, attempt, failed_attempts,
      CASE WHEN status = 2 THEN started_sequence ELSE 0 END AS started_sequence, last_sequence,
      progress, retry_of, NULL::text AS failure, arguments, NULL::text AS result,
      priority, run_at_ms, start_by_ms, trace, lease_id, returned
    FROM live_tasks
    UNION ALL
    SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
      finished_at_ms, expires_at_ms, attempt, failed_attempts,
      started_sequence, last_sequence,
      progress, retry_of, failure, arguments, result,
      priority, run_at_ms, start_by_ms, trace, lease_id, returned
    FROM finished_tasks;
  `,
  ),
  expand("metrics over time", historySchema('text COLLATE "C"')),
  expand(
    "unsuccessful tasks",
    `
  -- Failed and cancelled tasks by age, without reading the many that succeeded.
  CREATE INDEX finished_tasks_unsuccessful ON finished_tasks (deployment_id, task_id) WHERE status >= 4;
  `,
  ),
  expand("uses of sessions", sessionUsesSchema('text COLLATE "C"')),
  expand("operators", operatorsSchema()),
  expand("facts of nodes", nodeFactsSchema('text COLLATE "C"')),
  expand("levels of log lines", logLevelsSchema('text COLLATE "C"')),
  expand(
    "streamed results",
    `
  -- Pieces of streamed results, several to a row (piece-runs.ts), until their task is deleted.
  CREATE TABLE task_pieces (
    deployment_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    -- Of the last piece of the row.
    last_sequence integer NOT NULL,
    pieces integer NOT NULL,
    form smallint NOT NULL,
    bytes integer NOT NULL,
    data bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (deployment_id, task_id, attempt, last_sequence)
  );
  `,
  ),
  expand(
    "leases of workers on other machines",
    `
  -- Digest of the secret with which another node may adopt the lease; null: it ends with its node.
  ALTER TABLE leases ADD COLUMN session text;
  `,
  ),
  expand("worker access of tokens", workerTokensSchema()),
  expand("placement of workers", placementSchema('text COLLATE "C"')),
  expand("queue time of deployments", queueTimeSchema()),
  expand("retention of deployments", retentionSchema("bigint")),
  expand(
    "suspects",
    `
  -- True once the worker of an attempt died: it runs alone in a worker, until it has not ended one.
  ALTER TABLE live_tasks ADD COLUMN suspect boolean NOT NULL DEFAULT false;
  CREATE INDEX live_tasks_suspect ON live_tasks (deployment_id, endpoint)
    WHERE suspect AND status = 1;
  `,
  ),
  expand(
    "heads of calls",
    `
  -- On the first part: the head of the request, or of the answer, as JSON; null for nearly all.
  ALTER TABLE payload_parts ADD COLUMN head TEXT;
  `,
  ),
  expand("requests for monitoring", monitoringRequestsSchema('text COLLATE "C"')),
];
