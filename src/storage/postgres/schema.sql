-- The schema of a Postgres database, as version 1 of the program's migrations (schema.ts) makes
-- it. Later migrations are in schema.ts: what is here never changes once it is released.
--
-- Every key of a task begins with its deployment, and every other key with its organization
-- wherever a row belongs to one.
--
-- An update in Postgres writes a new version of the row and leaves the old one to vacuum. So the
-- few queued and running tasks are in live_tasks, with room in its pages for new versions, and
-- the many finished ones in finished_tasks, which is written once per task. Claims never scan
-- history. The view tasks is the union; a task is in exactly one of the two, because it moves
-- within one statement.
--
-- Ids compare byte by byte (COLLATE "C"), as everywhere in the platform. JSON is stored as text:
-- jsonb would not return exactly what was stored, and neither type accepts U+0000.
--
-- Postgres plans by statistics that lag behind: on a new database it may read all rows of an
-- organization instead of the one that a join selects. Frequent statements leave it no choice.
-- Secondary indexes begin with the column that they are for, unless they serve a list of an
-- organization; and a join by the whole key compares its organization with
-- organization_id || '', an opaque expression, so that the index is entered with both columns.
--
-- No table has a plain password, token, session or code: only digests, hashes and sealed values.
-- Lookups by digest have a unique index.

--------------------------------------------------------------------------------
-- Tasks
--------------------------------------------------------------------------------

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
  -- The trace that the attempts of a task belong to; null for nearly all.
  trace text,
  -- Attempts that went back to the queue, each as JSON; null for nearly all tasks.
  returned text[],
  -- Attempts whose lease ended before they did.
  lost_nodes integer NOT NULL DEFAULT 0,
  -- True once the worker of an attempt died: it runs alone in a worker, until it has not ended one.
  suspect boolean NOT NULL DEFAULT false,
  -- How arguments begin that do not stand in the row; null for nearly all.
  arguments_preview text,
  -- The webhook that the submit has named; null for nearly all.
  webhook text COLLATE "C",
  -- Whose it is among the callers that share its endpoint; null where none was given and nothing asks
  -- for it, empty where it is nobody's and the endpoint goes by keys.
  key text COLLATE "C",
  -- The token that submitted it, which its use is counted for; null: none did.
  token_id text COLLATE "C",
  -- The size of arguments that do not stand in the row; null for nearly all.
  argument_bytes bigint,
  -- As stored.ts writes them; null for nearly all.
  tags text COLLATE "C",
  PRIMARY KEY (deployment_id, task_id)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
CREATE INDEX live_tasks_ready ON live_tasks (deployment_id, endpoint, priority DESC, run_at_ms, task_id)
  WHERE status = 1;
CREATE INDEX live_tasks_scheduled ON live_tasks (deployment_id, run_at_ms) WHERE status = 0;
CREATE INDEX live_tasks_start_by ON live_tasks (start_by_ms)
  WHERE status <= 1 AND start_by_ms IS NOT NULL;
CREATE INDEX live_tasks_leased ON live_tasks (lease_id) WHERE status = 2;
-- Whether anything of an endpoint is due, without reading what is due of the others.
CREATE INDEX live_tasks_scheduled_by_endpoint ON live_tasks (deployment_id, endpoint, run_at_ms)
  WHERE status = 0;
CREATE INDEX live_tasks_suspect ON live_tasks (deployment_id, endpoint)
  WHERE suspect AND status = 1;
-- What waits, and what runs, of each key, for endpoints that callers share by their keys.
CREATE INDEX live_tasks_ready_by_key
  ON live_tasks (deployment_id, endpoint, key, priority DESC, run_at_ms, task_id)
  WHERE status = 1 AND key IS NOT NULL;
CREATE INDEX live_tasks_running_by_key ON live_tasks (deployment_id, endpoint, key)
  WHERE status = 2 AND key IS NOT NULL;
-- What retries a task.
CREATE INDEX live_tasks_retries ON live_tasks (deployment_id, retry_of, task_id)
  WHERE retry_of IS NOT NULL;
-- Tasks with tags, without reading those that have none.
CREATE INDEX live_tasks_tagged ON live_tasks (deployment_id, task_id)
  WHERE tags IS NOT NULL;

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
  -- What a task was submitted with is told after its end too.
  priority integer NOT NULL DEFAULT 0,
  run_at_ms bigint NOT NULL,
  start_by_ms bigint,
  trace text,
  returned text[],
  arguments_preview text,
  webhook text COLLATE "C",
  key text COLLATE "C",
  -- The most memory that the worker held while the attempt ran that ended it; null: not known.
  peak_memory_bytes bigint,
  -- As stored.ts writes them; null for nearly all.
  tags text COLLATE "C",
  PRIMARY KEY (deployment_id, task_id)
);
CREATE INDEX finished_tasks_expiry ON finished_tasks (expires_at_ms);
-- Failed and cancelled tasks by age, without reading the many that succeeded.
CREATE INDEX finished_tasks_unsuccessful ON finished_tasks (deployment_id, task_id)
  WHERE status >= 4;
CREATE INDEX finished_tasks_retries ON finished_tasks (deployment_id, retry_of, task_id)
  WHERE retry_of IS NOT NULL;
CREATE INDEX finished_tasks_tagged ON finished_tasks (deployment_id, task_id)
  WHERE tags IS NOT NULL;

CREATE VIEW tasks AS
  SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
    NULL::bigint AS finished_at_ms, expires_at_ms, attempt, failed_attempts,
    CASE WHEN status = 2 THEN started_sequence ELSE 0 END AS started_sequence, last_sequence,
    progress, retry_of, NULL::text AS failure, arguments, NULL::text AS result,
    priority, run_at_ms, start_by_ms, trace, lease_id, returned, arguments_preview,
    idempotency_key, key, NULL::bigint AS peak_memory_bytes, tags
  FROM live_tasks
  UNION ALL
  SELECT deployment_id, task_id, endpoint, status, created_at_ms, started_at_ms,
    finished_at_ms, expires_at_ms, attempt, failed_attempts,
    started_sequence, last_sequence,
    progress, retry_of, failure, arguments, result,
    priority, run_at_ms, start_by_ms, trace, lease_id, returned, arguments_preview,
    idempotency_key, key, peak_memory_bytes, tags
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
  -- A part that is a blob has no data of its own; about has its size and digest.
  blob_id text COLLATE "C",
  -- On the first part: the head of the request, or of the answer, as JSON; null for nearly all.
  head text,
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

-- Tasks that were deleted before their time, until then: their ids, and nothing else of them.
CREATE TABLE deleted_tasks (
  deployment_id text COLLATE "C" NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  deleted_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (deployment_id, task_id)
);
CREATE INDEX deleted_tasks_expiry ON deleted_tasks (expires_at_ms);

CREATE TABLE idempotency_keys (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key)
);

-- The key that was claimed last of an endpoint whose callers take turns; the next one is after it.
-- Who claims holds the lock of the row, so that no two nodes count the same running tasks.
CREATE TABLE key_turns (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  -- Where keys take turns by seconds: what the least served of those that waited has had, in
  -- milliseconds. A key that is new has had as much. Null: they do not.
  time_ms bigint,
  -- How long the last tasks ran, together, and how many these are.
  run_ms bigint NOT NULL DEFAULT 0,
  runs integer NOT NULL DEFAULT 0,
  PRIMARY KEY (deployment_id, endpoint)
) WITH (fillfactor = 50);

-- The last starts of each key of an endpoint that bounds their rate, numbered from 1 while some are
-- kept: at most as many as may start in its period, and none that a window can still hold is missing.
CREATE TABLE key_starts (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  -- By the clock of the database.
  started_at_ms bigint NOT NULL,
  -- No window that ends later has it.
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key, number)
);
CREATE INDEX key_starts_expiry ON key_starts (expires_at_ms);
-- Which keys of an endpoint may start one more. An opaque expression, so that nothing else is looked up
-- by it.
CREATE INDEX key_starts_over ON key_starts ((deployment_id || '/' || endpoint), expires_at_ms);

-- Starts that are kept of tasks that have not begun: the next claim takes them out of `key_starts`.
CREATE TABLE key_unbegun (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  started_at_ms bigint NOT NULL,
  -- As of the start.
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, task_id, attempt)
);
CREATE INDEX key_unbegun_expiry ON key_unbegun (expires_at_ms);

-- What keys have had that take turns by seconds.
CREATE TABLE key_times (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  -- Of the tasks that have ended, and what it was given when it was new.
  had_ms bigint NOT NULL,
  -- How long its last tasks ran, together, and how many these are.
  run_ms bigint NOT NULL,
  runs integer NOT NULL,
  -- A day after its last task has started, or was counted.
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key)
) WITH (fillfactor = 50);
CREATE INDEX key_times_expiry ON key_times (expires_at_ms);

-- How long attempts of such keys ran that have ended since the last claim, which counts them.
CREATE TABLE key_runs (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  run_ms bigint NOT NULL,
  ended_at_ms bigint NOT NULL
);
CREATE INDEX key_runs_endpoint ON key_runs (deployment_id, endpoint);
CREATE INDEX key_runs_ended ON key_runs (ended_at_ms);

CREATE TABLE leases (
  lease_id text COLLATE "C" NOT NULL PRIMARY KEY,
  owner text NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- Digest of the secret with which another node may adopt the lease; null: it ends with its node.
  session text
) WITH (fillfactor = 50);

CREATE TABLE queue_counts (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  queued bigint NOT NULL,
  running bigint NOT NULL,
  PRIMARY KEY (deployment_id, endpoint)
) WITH (fillfactor = 50);

-- What has changed in counts and in usage, until it is folded into them (counts.ts).
CREATE TABLE queue_count_deltas (
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  queued bigint NOT NULL,
  running bigint NOT NULL,
  -- What was used, as in usage; null where nothing was.
  day integer,
  token_id text COLLATE "C",
  tasks bigint,
  run_ms bigint,
  gpu_ms double precision,
  bytes_in bigint,
  bytes_out bigint,
  -- What functions reported, each as JSON; null for nearly all.
  units text[]
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX queue_count_deltas_by_endpoint ON queue_count_deltas (deployment_id, endpoint);

-- Who used what, by day (of UTC, since 1970).
CREATE TABLE usage (
  deployment_id text COLLATE "C" NOT NULL,
  day integer NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  -- Empty: no token was there.
  token_id text COLLATE "C" NOT NULL,
  calls bigint NOT NULL DEFAULT 0,
  tasks bigint NOT NULL DEFAULT 0,
  run_ms bigint NOT NULL DEFAULT 0,
  gpu_ms double precision NOT NULL DEFAULT 0,
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (deployment_id, day, endpoint, token_id)
) WITH (fillfactor = 50);
CREATE INDEX usage_by_day ON usage (day);

-- The units that functions reported.
CREATE TABLE usage_units (
  deployment_id text COLLATE "C" NOT NULL,
  day integer NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  unit text COLLATE "C" NOT NULL,
  amount double precision NOT NULL,
  PRIMARY KEY (deployment_id, day, endpoint, token_id, unit)
) WITH (fillfactor = 50);
CREATE INDEX usage_units_by_day ON usage_units (day);

-- Both with what is not folded into them yet.
CREATE VIEW usage_now AS
  SELECT deployment_id, day, endpoint, token_id, calls, tasks, run_ms, gpu_ms, bytes_in, bytes_out
  FROM usage
  UNION ALL
  SELECT deployment_id, day, endpoint, coalesce(token_id, ''), 0, tasks, run_ms, gpu_ms, bytes_in,
    bytes_out
  FROM queue_count_deltas WHERE day IS NOT NULL;
CREATE VIEW usage_units_now AS
  SELECT deployment_id, day, endpoint, token_id, unit, amount FROM usage_units
  UNION ALL
  SELECT deployment_id, day, endpoint, coalesce(token_id, ''), reported.key,
    reported.value::double precision
  FROM queue_count_deltas, unnest(units) AS report, json_each_text(report::json) AS reported
  WHERE units IS NOT NULL;

-- The last flush of each start of a node, so that one that is repeated adds nothing (usage.ts).
CREATE TABLE usage_flushes (
  recorder text COLLATE "C" NOT NULL PRIMARY KEY,
  sequence bigint NOT NULL,
  day integer NOT NULL
);

-- The names of deleted deployments and tokens that usage is of, by their ids.
CREATE TABLE usage_names (
  organization_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  -- deployment; or, of a token, organization or personal.
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  -- When it was deleted.
  day integer NOT NULL,
  PRIMARY KEY (organization_id, id)
);

--------------------------------------------------------------------------------
-- Large files of tasks
--------------------------------------------------------------------------------

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

-- The blob store, where it is this database.
CREATE TABLE blob_chunks (
  blob_id text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  data bytea STORAGE EXTERNAL NOT NULL,
  PRIMARY KEY (blob_id, number)
);

--------------------------------------------------------------------------------
-- Accounts: people, organizations, tokens
--------------------------------------------------------------------------------

-- Numbers that are counted up under the lock of their row.
CREATE TABLE counters (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO counters (name, value) VALUES ('setup', 0), ('changes', 0), ('device_logins', 0);

CREATE TABLE users (
  user_id text COLLATE "C" NOT NULL PRIMARY KEY,
  -- It never changes: memberships have a copy.
  email text COLLATE "C" NOT NULL UNIQUE,
  display_name text COLLATE "C" NOT NULL,
  password_hash text COLLATE "C",
  created_at_ms bigint NOT NULL,
  -- Whether the address was proven.
  email_verified integer NOT NULL DEFAULT 0,
  -- Whether they operate the platform (docs/decisions).
  operator integer NOT NULL DEFAULT 0
);

-- What OpenID Connect providers call people.
CREATE TABLE identities (
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (issuer, subject)
);

CREATE TABLE sessions (
  session_id text COLLATE "C" NOT NULL PRIMARY KEY,
  digest text COLLATE "C" NOT NULL UNIQUE,
  user_id text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  authenticated_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- The browser or program that signed in, in a few words.
  client text COLLATE "C" NOT NULL DEFAULT '',
  -- Of the last recorded use, or of the sign-in before the first.
  address text COLLATE "C" NOT NULL DEFAULT '',
  used_at_ms bigint
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at_ms);

-- The one setup link, until it is used.
CREATE TABLE setup_codes (
  digest text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at_ms bigint NOT NULL
);

CREATE TABLE organizations (
  organization_id text COLLATE "C" NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  display_name text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  monitoring_enabled integer NOT NULL DEFAULT 0,
  reveal_enabled integer NOT NULL DEFAULT 1,
  -- The lock of the organization: each change of anything in it counts this up.
  locks bigint NOT NULL DEFAULT 0,
  invitation_links_enabled integer NOT NULL DEFAULT 0,
  -- The request of the organization for monitoring tokens: when and by whom; null without one.
  monitoring_asked_at_ms bigint,
  monitoring_asked_by text COLLATE "C"
);

CREATE TABLE memberships (
  organization_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  joined_at_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, user_id)
);
CREATE UNIQUE INDEX memberships_by_email ON memberships (organization_id, email);
CREATE INDEX memberships_by_user ON memberships (user_id);

CREATE TABLE invitations (
  organization_id text COLLATE "C" NOT NULL,
  invitation_id text COLLATE "C" NOT NULL UNIQUE,
  digest text COLLATE "C" NOT NULL UNIQUE,
  email text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- Whether the link was sent by mail and shown to nobody.
  mailed integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, invitation_id)
);
CREATE UNIQUE INDEX invitations_in_organization ON invitations (organization_id, email);
CREATE INDEX invitations_by_email ON invitations (email);
CREATE INDEX invitations_expiry ON invitations (expires_at_ms);

CREATE TABLE deployments (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  requires_token integer NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  updated_at_ms bigint NOT NULL,
  desired_state text COLLATE "C" NOT NULL DEFAULT 'running',
  -- The newest one; null before the first.
  target_revision integer,
  min_workers integer NOT NULL DEFAULT 1,
  max_workers integer NOT NULL DEFAULT 2,
  memory_mib integer NOT NULL DEFAULT 512,
  cpu double precision NOT NULL DEFAULT 1,
  -- Names and values, as JSON.
  environment text COLLATE "C" NOT NULL DEFAULT '{}',
  version integer NOT NULL DEFAULT 1,
  -- Workers have only the secrets that were set at this version of the deployment; 0: all.
  secrets_since integer NOT NULL DEFAULT 0,
  -- The version of the deployment at which a secret was set or removed last; 0: none was.
  secrets_version integer NOT NULL DEFAULT 0,
  -- Where the workers of a deployment may connect to: access and hosts, as JSON.
  network text COLLATE "C" NOT NULL DEFAULT '{"access":"open","hosts":[]}',
  -- Required labels, as a JSON object.
  requires text COLLATE "C" NOT NULL DEFAULT '{}',
  -- local, remote or any.
  place text COLLATE "C" NOT NULL DEFAULT 'any',
  -- The target of scaling: how long its tasks should wait at most.
  queue_time_ms integer NOT NULL DEFAULT 1000,
  -- How long its tasks are kept after their end; 0 leaves it to their endpoints.
  retention_ms bigint NOT NULL DEFAULT 0,
  -- How long a worker may take to load its service; 0 leaves it to its code, and that to the operator.
  ready_timeout_ms integer NOT NULL DEFAULT 0,
  -- Processes that a worker may start; 0 leaves it to its code.
  processes integer NOT NULL DEFAULT 0,
  -- GPUs of each worker (below 1: a part of one), and the memory that it has of each (0: the whole); both
  -- 0 leave it to its code.
  gpus double precision NOT NULL DEFAULT 0,
  gpu_memory_mib integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, deployment_id)
);
CREATE UNIQUE INDEX deployments_by_name ON deployments (organization_id, name);
CREATE UNIQUE INDEX deployments_by_id ON deployments (deployment_id);

CREATE TABLE tokens (
  organization_id text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  -- Whose it is, of personal ones; of others who made it, null for a token.
  user_id text COLLATE "C",
  name text COLLATE "C" NOT NULL,
  description text COLLATE "C" NOT NULL,
  developer_operations integer NOT NULL,
  protected_endpoint integer NOT NULL,
  monitoring integer NOT NULL,
  all_deployments integer NOT NULL,
  expires_at_ms bigint NOT NULL,
  not_before_ms bigint,
  -- A list, as JSON.
  allowed_networks text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  updated_at_ms bigint NOT NULL,
  last_used_at_ms bigint,
  last_used_address text COLLATE "C",
  version integer NOT NULL,
  -- Access to join workers on other machines.
  worker integer NOT NULL DEFAULT 0,
  -- Access to start such machines.
  launch integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, token_id)
);
CREATE INDEX tokens_by_user ON tokens (user_id, organization_id, token_id);

CREATE TABLE token_deployments (
  organization_id text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  -- The deployment's, which never changes.
  name text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, token_id, deployment_id)
);
CREATE INDEX token_deployments_by_deployment ON token_deployments (deployment_id);

-- The values of a token: the current one, which has no end of its own, and
-- the one before while it lives on. The indexes allow one of each.
CREATE TABLE token_secrets (
  organization_id text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL UNIQUE,
  digest_key_id text COLLATE "C" NOT NULL,
  hint text COLLATE "C" NOT NULL,
  sealed text COLLATE "C",
  valid_until_ms bigint,
  -- Tells the values of a token apart: from 0 to 255, and then from 0 again.
  generation integer NOT NULL,
  PRIMARY KEY (organization_id, token_id, digest)
);
CREATE UNIQUE INDEX token_secrets_current ON token_secrets (organization_id, token_id)
  WHERE valid_until_ms IS NULL;
CREATE UNIQUE INDEX token_secrets_previous ON token_secrets (organization_id, token_id)
  WHERE valid_until_ms IS NOT NULL;
CREATE INDEX token_secrets_expiry ON token_secrets (valid_until_ms)
  WHERE valid_until_ms IS NOT NULL;
CREATE INDEX token_secrets_sealed ON token_secrets (digest) WHERE sealed IS NOT NULL;

-- What nodes may have remembered and have to forget.
CREATE TABLE changes (
  sequence bigint NOT NULL PRIMARY KEY,
  time_ms bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL
);

-- Rows are added and never changed. One deed may be an event in several organizations.
CREATE TABLE audit_events (
  organization_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  time_ms bigint NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  -- Names and values, as JSON.
  details text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, event_id)
);

CREATE TABLE login_codes (
  digest text COLLATE "C" NOT NULL PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  code_challenge text COLLATE "C" NOT NULL,
  redirect_uri text COLLATE "C" NOT NULL,
  host_name text COLLATE "C" NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX login_codes_by_user ON login_codes (organization_id, user_id);
CREATE INDEX login_codes_expiry ON login_codes (expires_at_ms);

CREATE TABLE device_logins (
  device_digest text COLLATE "C" NOT NULL PRIMARY KEY,
  user_code_digest text COLLATE "C" NOT NULL UNIQUE,
  host_name text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  interval_ms bigint NOT NULL,
  asked_at_ms bigint NOT NULL,
  -- pending, approved or denied; by whom, and for which organization.
  answer text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C",
  user_id text COLLATE "C"
);
CREATE INDEX device_logins_by_user ON device_logins (organization_id, user_id);
CREATE INDEX device_logins_expiry ON device_logins (expires_at_ms);

--------------------------------------------------------------------------------
-- Hosting: deployments, artifacts, nodes
--------------------------------------------------------------------------------

CREATE TABLE deployment_secrets (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  sealed text COLLATE "C" NOT NULL,
  -- The version of the deployment that set it.
  version integer NOT NULL DEFAULT 0,
  set_at_ms bigint NOT NULL,
  set_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, name)
);

-- Deployments that are no more, and may have left something behind.
CREATE TABLE deleted_deployments (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  deleted_at_ms bigint NOT NULL,
  -- When to look for what it has left.
  look_after_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);
CREATE INDEX deleted_deployments_by_id ON deleted_deployments (deployment_id);
CREATE INDEX deleted_deployments_look ON deleted_deployments (look_after_ms);

CREATE TABLE revisions (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  revision integer NOT NULL,
  digest text COLLATE "C" NOT NULL,
  rolled_back_to integer,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  -- The version of the deployment that made it.
  version integer NOT NULL DEFAULT 0,
  -- Who confirmed that its code may have the secrets; null: nobody.
  secrets_confirmed_by text COLLATE "C",
  secrets_confirmed_at_ms bigint,
  -- Where its code was in git, as JSON; null: not told.
  source text COLLATE "C",
  -- When a node first served it; null: none has.
  served_at_ms bigint,
  PRIMARY KEY (organization_id, deployment_id, revision)
);
CREATE INDEX revisions_by_artifact ON revisions (organization_id, digest);

-- Artifacts and versions of models, each while a revision has it or it is kept.
CREATE TABLE artifacts (
  organization_id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  index_text text COLLATE "C" NOT NULL,
  -- A list of names and kinds, as JSON.
  endpoints text COLLATE "C" NOT NULL,
  files integer NOT NULL,
  size_bytes bigint NOT NULL,
  PRIMARY KEY (organization_id, digest)
);

-- Files in the blob store. A row is there before the bytes are, and until
-- after they are gone: nothing can be forgotten there.
CREATE TABLE artifact_files (
  organization_id text COLLATE "C" NOT NULL,
  blob_id text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  size_bytes bigint NOT NULL,
  -- uploading; ready; or dying, when nothing may use it any more.
  state text COLLATE "C" NOT NULL,
  -- How many artifacts and models have it.
  reference_count integer NOT NULL DEFAULT 0,
  -- When it may be deleted; null while any of them has it.
  delete_after_ms bigint,
  PRIMARY KEY (organization_id, blob_id)
);
CREATE UNIQUE INDEX artifact_files_ready ON artifact_files (organization_id, sha256)
  WHERE state = 'ready';
CREATE INDEX artifact_files_unused ON artifact_files (delete_after_ms)
  WHERE delete_after_ms IS NOT NULL;

CREATE TABLE artifact_references (
  organization_id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  blob_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, digest, blob_id)
);

-- The models of an artifact, by the digests of their versions.
CREATE TABLE artifact_models (
  organization_id text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  model_digest text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, digest, model_digest)
);
CREATE INDEX artifact_models_by_model ON artifact_models (organization_id, model_digest);

-- The sizes of all files of an organization together.
CREATE TABLE artifact_usage (
  organization_id text COLLATE "C" NOT NULL PRIMARY KEY,
  size_bytes bigint NOT NULL
);

-- Models: weights under a name.
CREATE TABLE models (
  organization_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  -- The number of the newest version that it ever had.
  last_version integer NOT NULL,
  PRIMARY KEY (organization_id, name)
);

-- Versions of models. The index of a ready one is in artifacts, by its digest.
CREATE TABLE model_versions (
  organization_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  -- importing, ready or failed.
  state text COLLATE "C" NOT NULL,
  -- Null until it is ready.
  digest text COLLATE "C",
  size_bytes bigint NOT NULL,
  files integer NOT NULL,
  -- Where it was fetched from, as its caller named it; empty for one that was pushed.
  source text COLLATE "C" NOT NULL,
  -- The source as what it was when the import began: the same text is the same files.
  pinned text COLLATE "C" NOT NULL,
  repository text COLLATE "C" NOT NULL,
  commit_id text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  -- A list of texts, as JSON.
  warnings text COLLATE "C" NOT NULL,
  -- Why it failed.
  reason text COLLATE "C" NOT NULL,
  -- A token for the source, until the import has ended.
  sealed_token text COLLATE "C",
  -- Which run imports it, and until when it has it for itself.
  claim text COLLATE "C" NOT NULL,
  claimed_until_ms bigint NOT NULL,
  bytes_done bigint NOT NULL,
  bytes_per_second bigint NOT NULL,
  PRIMARY KEY (organization_id, model, version)
);
CREATE INDEX model_versions_by_digest ON model_versions (organization_id, digest);
CREATE INDEX model_versions_importing ON model_versions (claimed_until_ms)
  WHERE state = 'importing';

-- What imports have stored: files of the index, or parts of them.
CREATE TABLE model_imported_files (
  organization_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  path text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  size_bytes bigint NOT NULL,
  -- The digest of the whole file, as its source tells it.
  origin text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, model, version, path)
);
CREATE INDEX model_imported_files_by_origin ON model_imported_files (organization_id, origin);

CREATE TABLE nodes (
  node_id text COLLATE "C" NOT NULL PRIMARY KEY,
  url text COLLATE "C",
  started_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- What it says of itself with each heartbeat, as JSON; null: nothing yet.
  facts text COLLATE "C",
  -- The name of its machine, and when the node sent its last heartbeat.
  machine text COLLATE "C",
  heard_at_ms bigint
);
CREATE INDEX nodes_expiry ON nodes (expires_at_ms);

-- Machines that take no new work, by their names. Those of nodes are of the organization ''.
CREATE TABLE drained_machines (
  organization_id text COLLATE "C" NOT NULL,
  machine text COLLATE "C" NOT NULL,
  drained_at_ms bigint NOT NULL,
  drained_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, machine)
);

-- What each node says of each deployment.
CREATE TABLE deployment_reports (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  revision integer,
  target_revision integer,
  version integer NOT NULL,
  workers integer NOT NULL,
  -- The workers of the node, as JSON; null until the node reports some.
  running text COLLATE "C",
  PRIMARY KEY (organization_id, deployment_id, node_id)
);
CREATE INDEX deployment_reports_by_node ON deployment_reports (node_id);

-- Which launcher starts the machines of a deployment, until when, and what it says of them.
CREATE TABLE launchers (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  launcher text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- As JSON.
  report text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

-- What a worker of each deployment told of its service last.
CREATE TABLE manifests (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  -- Digest of all that it may depend on: the artifact, settings and secrets.
  made_of text COLLATE "C" NOT NULL,
  -- The form that nodes of its time wrote.
  format integer NOT NULL,
  -- 1: a worker needs nothing but the files of the artifact, on whatever node.
  files_only integer NOT NULL,
  -- As JSON.
  manifest text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

-- Addresses that are told how the tasks of a deployment end.
CREATE TABLE webhooks (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  url text NOT NULL,
  -- Bit n: told of tasks that end with the status n.
  events integer NOT NULL,
  -- Empty: of all endpoints.
  endpoint text COLLATE "C" NOT NULL,
  named_only integer NOT NULL,
  sealed text NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  disabled_at_ms bigint,
  disabled_reason text,
  failures integer NOT NULL DEFAULT 0,
  paused_until_ms bigint NOT NULL DEFAULT 0,
  rotated_until_ms bigint NOT NULL DEFAULT 0,
  -- webhook; or mail or slack, of a receiver of alerts, whose deployment_id is its organization's id.
  kind text NOT NULL DEFAULT 'webhook',
  version integer NOT NULL DEFAULT 1,
  PRIMARY KEY (deployment_id, name)
);

-- What they are told: the outbox.
CREATE TABLE webhook_deliveries (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  -- The status that the task ended with; 16: alerts fire, 17: alerts have cleared; 0: a test.
  event integer NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  -- 0: waits, 1: delivered, 2: given up.
  state integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  -- While it is taken, when it is due again for others.
  next_at_ms bigint NOT NULL DEFAULT 0,
  claim text NOT NULL DEFAULT '',
  answers text NOT NULL DEFAULT '[]',
  body text,
  PRIMARY KEY (deployment_id, delivery_id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at_ms)
  WHERE state = 0;
CREATE INDEX webhook_deliveries_webhook
  ON webhook_deliveries (webhook_id, created_at_ms, delivery_id);
CREATE INDEX webhook_deliveries_order
  ON webhook_deliveries (deployment_id, created_at_ms, delivery_id);
CREATE INDEX webhook_deliveries_task ON webhook_deliveries (deployment_id, task_id);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at_ms);

-- How much of a measure of usage may be had in a day or a month.
CREATE TABLE budgets (
  organization_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  budget_id text COLLATE "C" NOT NULL UNIQUE,
  -- calls, tasks, run_seconds, gpu_seconds, bytes_in, bytes_out, or a unit.
  measure text COLLATE "C" NOT NULL,
  amount double precision NOT NULL,
  -- day or month.
  period text COLLATE "C" NOT NULL,
  -- Whose use it bounds: a name, and an id; empty: all.
  deployment text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  -- What was used since this day, as it was counted last.
  used double precision NOT NULL,
  used_from_day integer NOT NULL,
  -- The part of it that was used before this day, which does not change any more.
  settled double precision NOT NULL,
  settled_to_day integer NOT NULL,
  counted_at_ms bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  updated_at_ms bigint NOT NULL,
  updated_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, name)
);
CREATE INDEX budgets_due ON budgets (counted_at_ms);

-- When alerts fire, and who is told.
CREATE TABLE alert_rules (
  organization_id text NOT NULL,
  name text NOT NULL,
  rule_id text NOT NULL UNIQUE,
  kind text NOT NULL,
  threshold double precision NOT NULL,
  -- Names, as JSON; of deployments, empty: all.
  deployments text NOT NULL,
  receivers text NOT NULL,
  hold_ms bigint NOT NULL,
  disabled integer NOT NULL DEFAULT 0,
  silenced_until_ms bigint NOT NULL DEFAULT 0,
  -- When it is evaluated next; null while it is disabled. While it is taken, when others may.
  due_at_ms bigint,
  claim text NOT NULL DEFAULT '',
  evaluated_at_ms bigint,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  version integer NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, name)
);
CREATE INDEX alert_rules_due ON alert_rules (due_at_ms) WHERE due_at_ms IS NOT NULL;

-- What rules have found, each of one subject.
CREATE TABLE alerts (
  organization_id text NOT NULL,
  alert_id text NOT NULL,
  rule_id text NOT NULL,
  rule text NOT NULL,
  kind text NOT NULL,
  -- What it is about, for programs and for people.
  subject text NOT NULL,
  name text NOT NULL,
  text text NOT NULL,
  since_ms bigint NOT NULL,
  -- Null: it has not held for long enough.
  fired_at_ms bigint,
  -- Since when it is not true any more; null: it is.
  absent_since_ms bigint,
  cleared_at_ms bigint,
  -- 0: nobody was told, 1: that it fires, 2: nothing is left to tell.
  told integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, alert_id)
);
CREATE UNIQUE INDEX alerts_live ON alerts (rule_id, subject) WHERE cleared_at_ms IS NULL;
CREATE INDEX alerts_order ON alerts (organization_id, fired_at_ms, alert_id)
  WHERE fired_at_ms IS NOT NULL;
CREATE INDEX alerts_untold ON alerts (rule_id) WHERE told = 1 AND cleared_at_ms IS NOT NULL;
CREATE INDEX alerts_cleared ON alerts (cleared_at_ms) WHERE cleared_at_ms IS NOT NULL;

-- Calls of a deployment at times that a cron expression says.
CREATE TABLE schedules (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  -- JSON.
  arguments text NOT NULL,
  cron text COLLATE "C" NOT NULL,
  time_zone text COLLATE "C" NOT NULL,
  -- skip, queue or replace.
  overlap text COLLATE "C" NOT NULL,
  -- none, one or all.
  catch_up text COLLATE "C" NOT NULL,
  paused integer NOT NULL,
  -- 1: made by a deploy, and kept as its tessera.yaml says.
  declared integer NOT NULL,
  -- Changes with what it says, so that nobody fires what they read before.
  version integer NOT NULL,
  -- The time to fire next; null while it is paused.
  next_at_ms bigint,
  -- The task that it submitted last, and its time; null: none yet.
  task_id text COLLATE "C",
  task_at_ms bigint,
  -- What became of its last time: task, skipped, missed or refused; null: none has come.
  outcome text COLLATE "C",
  outcome_at_ms bigint,
  message text,
  created_at_ms bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  updated_at_ms bigint NOT NULL,
  updated_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, name)
);
CREATE INDEX schedules_due ON schedules (next_at_ms, deployment_id) WHERE next_at_ms IS NOT NULL;

-- Endpoints whose tasks nobody claims until they are resumed.
CREATE TABLE paused_endpoints (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  paused_at_ms bigint NOT NULL,
  paused_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (deployment_id, endpoint)
);

-- Counted up under the lock of the row, so that lines appear in their order.
CREATE TABLE deployment_log_sequences (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  last_sequence bigint NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

CREATE TABLE deployment_logs (
  organization_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  time_ms bigint NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  revision integer NOT NULL,
  stream text COLLATE "C" NOT NULL,
  line text COLLATE "C" NOT NULL,
  -- info, warn or error; empty where nobody said it.
  level text COLLATE "C" NOT NULL DEFAULT '',
  -- The task whose function wrote the line; empty for others.
  task_id text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (organization_id, deployment_id, sequence)
);

--------------------------------------------------------------------------------
-- Cells: further databases, each with a part of the tasks
--------------------------------------------------------------------------------

-- Which part of a platform of several databases this is; no row: of one that has no cells.
CREATE TABLE cell_identity (
  platform_id text COLLATE "C" NOT NULL,
  -- 0: home.
  cell integer NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  -- Counted up as nodes look after the cell: lower than home has seen, its data is older.
  beat bigint NOT NULL DEFAULT 0,
  -- Digest of what it has of home's rows.
  mirrored text COLLATE "C" NOT NULL DEFAULT '',
  -- What was used in it is taken to home in numbered loads: the number of the last one, and what is
  -- in it; null: home has it.
  load_number bigint NOT NULL DEFAULT 0,
  load text
);

-- At home: the cells of the platform.
CREATE TABLE cells (
  cell integer NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  -- From then on, by home's clock, it takes tasks that have a key.
  keyed_from_ms bigint NOT NULL,
  -- From then on, by home's clock, it takes no new ones; null: it is open. None is opened again.
  closed_from_ms bigint,
  -- It is closed, and nothing is left in it: nodes start without it.
  emptied boolean NOT NULL DEFAULT false,
  -- The last beat of it that was seen.
  beat bigint NOT NULL DEFAULT 0,
  -- The last load of its usage that is here.
  load_number bigint NOT NULL DEFAULT 0
);

-- At home: the tasks that deliveries tell of which came from cells, as they ended, as JSON.
CREATE TABLE carried_ends (
  deployment_id text COLLATE "C" NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  ended text NOT NULL,
  PRIMARY KEY (deployment_id, delivery_id)
);

--------------------------------------------------------------------------------
-- Metrics of nodes, for each other and over time
--------------------------------------------------------------------------------

CREATE UNLOGGED TABLE metric_samples (
  organization_id text COLLATE "C" NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  layout_id text COLLATE "C" NOT NULL,
  layout text COLLATE "C" NOT NULL,
  -- By the node's clock.
  taken_at_ms bigint NOT NULL,
  samples text COLLATE "C" NOT NULL,
  -- By the database's clock, where there are several nodes.
  written_at_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, node_id)
);
CREATE INDEX metric_samples_by_node ON metric_samples (node_id);

CREATE TABLE metric_history (
  organization_id text COLLATE "C" NOT NULL,
  -- Empty for all deployments of the organization together.
  deployment_id text COLLATE "C" NOT NULL,
  resolution_ms bigint NOT NULL,
  -- By the node's clock.
  began_at_ms bigint NOT NULL,
  -- Which start of which node measured it.
  recorder text COLLATE "C" NOT NULL,
  -- JSON; the format is that of src/metrics/history/.
  platform text COLLATE "C" NOT NULL,
  custom text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, resolution_ms, began_at_ms, recorder)
);
CREATE INDEX metric_history_by_age ON metric_history (resolution_ms, began_at_ms);
