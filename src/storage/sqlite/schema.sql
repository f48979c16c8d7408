-- The schema of a SQLite database, as version 1 of the program's migrations (schema.ts) makes it.
-- Later migrations are in schema.ts: what is here never changes once it is released.
--
-- Every key of a task begins with its deployment, and every other key with its organization
-- wherever a row belongs to one. One table holds a task for its whole life. Partial indexes make
-- claims cheap: tasks_ready holds only the tasks that can be claimed now, however many have
-- finished. (SQLite updates in place and leaves no dead rows behind, so a second table for
-- history would only cost another statement per task.)
--
-- No table has a plain password, token, session or code: only digests, hashes and sealed values.
-- Lookups by digest have a unique index.

--------------------------------------------------------------------------------
-- Tasks
--------------------------------------------------------------------------------

CREATE TABLE tasks (
  deployment_id text NOT NULL,
  task_id text NOT NULL,
  endpoint text NOT NULL,
  status integer NOT NULL,
  priority integer NOT NULL,
  run_at_ms integer NOT NULL,
  start_by_ms integer,
  created_at_ms integer NOT NULL,
  started_at_ms integer,
  finished_at_ms integer,
  expires_at_ms integer NOT NULL,
  retention_ms integer NOT NULL,
  attempt integer NOT NULL,
  failed_attempts integer NOT NULL DEFAULT 0,
  lost_workers integer NOT NULL DEFAULT 0,
  lease_id text,
  abort_requested integer NOT NULL DEFAULT 0,
  started_sequence integer NOT NULL,
  last_sequence integer NOT NULL,
  progress_fraction real,
  progress_message text,
  retry_of text,
  idempotency_key text,
  failure text,
  arguments text,
  result text,
  -- The trace that the attempts of a task belong to; null for nearly all.
  trace text,
  -- Attempts that went back to the queue, as a JSON array; null for nearly all tasks.
  returned text,
  -- Attempts whose lease ended before they did.
  lost_nodes integer NOT NULL DEFAULT 0,
  -- True once the worker of an attempt died: it runs alone in a worker, until it has not ended one.
  suspect integer NOT NULL DEFAULT 0,
  -- How arguments begin that do not stand in the row; null for nearly all.
  arguments_preview text,
  -- The webhook that the submit has named; null for nearly all.
  webhook text,
  -- Whose it is among the callers that share its endpoint; null where none was given and nothing asks
  -- for it, empty where it is nobody's and the endpoint goes by keys.
  key text,
  -- The token that submitted it, which its use is counted for; null: none did.
  token_id text,
  -- The most memory that the worker held while the attempt ran that ended it; null: not known.
  peak_memory_bytes integer,
  -- As stored.ts writes them; null for nearly all.
  tags text,
  PRIMARY KEY (deployment_id, task_id)
) WITHOUT ROWID;
CREATE INDEX tasks_ready ON tasks (deployment_id, endpoint, priority DESC, run_at_ms, task_id)
  WHERE status = 1;
CREATE INDEX tasks_scheduled ON tasks (deployment_id, run_at_ms) WHERE status = 0;
CREATE INDEX tasks_start_by ON tasks (start_by_ms) WHERE status <= 1 AND start_by_ms IS NOT NULL;
CREATE INDEX tasks_leased ON tasks (lease_id) WHERE status = 2;
CREATE INDEX tasks_expiry ON tasks (expires_at_ms) WHERE status >= 3;
-- Whether anything of an endpoint is due, without reading what is due of the others.
CREATE INDEX tasks_scheduled_by_endpoint ON tasks (deployment_id, endpoint, run_at_ms)
  WHERE status = 0;
-- Failed and cancelled tasks by age, without reading the many that succeeded.
CREATE INDEX tasks_unsuccessful ON tasks (deployment_id, task_id, status, endpoint)
  WHERE status >= 4;
CREATE INDEX tasks_suspect ON tasks (deployment_id, endpoint) WHERE suspect = 1 AND status = 1;
-- What retries a task.
CREATE INDEX tasks_retries ON tasks (deployment_id, retry_of, task_id)
  WHERE retry_of IS NOT NULL;
-- Tasks with tags, without reading those that have none.
CREATE INDEX tasks_tagged ON tasks (deployment_id, task_id, tags, status)
  WHERE tags IS NOT NULL;

-- What waits, and what runs, of each key, for endpoints that callers share by their keys.
CREATE INDEX tasks_ready_by_key
  ON tasks (deployment_id, endpoint, key, priority DESC, run_at_ms, task_id)
  WHERE status = 1 AND key IS NOT NULL;
CREATE INDEX tasks_running_by_key ON tasks (deployment_id, endpoint, key)
  WHERE status = 2 AND key IS NOT NULL;

-- The key that was claimed last of an endpoint whose callers take turns; the next one is after it.
CREATE TABLE key_turns (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  -- Where keys take turns by seconds: what the least served of those that waited has had, in
  -- milliseconds. A key that is new has had as much. Null: they do not.
  time_ms integer,
  -- How long the last tasks ran, together, and how many these are.
  run_ms integer NOT NULL DEFAULT 0,
  runs integer NOT NULL DEFAULT 0,
  PRIMARY KEY (deployment_id, endpoint)
) WITHOUT ROWID;

-- The last starts of each key of an endpoint that bounds their rate, numbered from 1 while some are
-- kept: at most as many as may start in its period, and none that a window can still hold is missing.
CREATE TABLE key_starts (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  number integer NOT NULL,
  started_at_ms integer NOT NULL,
  -- No window that ends later has it.
  expires_at_ms integer NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key, number)
) WITHOUT ROWID;
CREATE INDEX key_starts_expiry ON key_starts (expires_at_ms);
-- Which keys of an endpoint may start one more.
CREATE INDEX key_starts_over ON key_starts (deployment_id, endpoint, expires_at_ms);

-- Starts that are kept of tasks that have not begun: the next claim takes them out of `key_starts`.
CREATE TABLE key_unbegun (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  task_id text NOT NULL,
  attempt integer NOT NULL,
  key text NOT NULL,
  started_at_ms integer NOT NULL,
  -- As of the start.
  expires_at_ms integer NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, task_id, attempt)
) WITHOUT ROWID;
CREATE INDEX key_unbegun_expiry ON key_unbegun (expires_at_ms);

-- What keys have had that take turns by seconds.
CREATE TABLE key_times (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  -- Of the tasks that have ended, and what it was given when it was new.
  had_ms integer NOT NULL,
  -- How long its last tasks ran, together, and how many these are.
  run_ms integer NOT NULL,
  runs integer NOT NULL,
  -- A day after its last task has started, or was counted.
  expires_at_ms integer NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key)
) WITHOUT ROWID;
CREATE INDEX key_times_expiry ON key_times (expires_at_ms);

-- How long attempts of such keys ran that have ended since the last claim, which counts them.
CREATE TABLE key_runs (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  run_ms integer NOT NULL,
  ended_at_ms integer NOT NULL
);
CREATE INDEX key_runs_endpoint ON key_runs (deployment_id, endpoint);
CREATE INDEX key_runs_ended ON key_runs (ended_at_ms);

-- Tasks that wait or run.
CREATE VIEW live_tasks AS SELECT deployment_id, task_id, status FROM tasks WHERE status <= 2;

-- Arguments and results that are files, or too large to stand in the row.
-- part 0 is the JSON text, parts from 1 are the files it refers to.
CREATE TABLE payload_parts (
  deployment_id text NOT NULL,
  task_id text NOT NULL,
  side text NOT NULL,
  part integer NOT NULL,
  content_type text NOT NULL,
  filename text,
  data blob NOT NULL,
  -- A part that is a blob has no data of its own.
  blob_id text,
  blob_bytes integer,
  blob_sha256 text,
  -- On the first part: the head of the request, or of the answer, as JSON; null for nearly all.
  head text,
  PRIMARY KEY (deployment_id, task_id, side, part)
);

CREATE TABLE task_events (
  deployment_id text NOT NULL,
  task_id text NOT NULL,
  sequence integer NOT NULL,
  time_ms integer NOT NULL,
  attempt integer NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (deployment_id, task_id, sequence)
) WITHOUT ROWID;

-- Pieces of streamed results, several to a row (piece-runs.ts), until their task is deleted.
CREATE TABLE task_pieces (
  deployment_id text NOT NULL,
  task_id text NOT NULL,
  attempt integer NOT NULL,
  -- Of the last piece of the row.
  last_sequence integer NOT NULL,
  pieces integer NOT NULL,
  form integer NOT NULL,
  bytes integer NOT NULL,
  data blob NOT NULL,
  PRIMARY KEY (deployment_id, task_id, attempt, last_sequence)
);

-- Tasks that were deleted before their time, until then: their ids, and nothing else of them.
CREATE TABLE deleted_tasks (
  deployment_id text NOT NULL,
  task_id text NOT NULL,
  deleted_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (deployment_id, task_id)
) WITHOUT ROWID;
CREATE INDEX deleted_tasks_expiry ON deleted_tasks (expires_at_ms);

CREATE TABLE idempotency_keys (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  digest text NOT NULL,
  task_id text NOT NULL,
  PRIMARY KEY (deployment_id, endpoint, key)
) WITHOUT ROWID;

CREATE TABLE leases (
  lease_id text NOT NULL PRIMARY KEY,
  owner text NOT NULL,
  expires_at_ms integer NOT NULL,
  -- Digest of the secret with which another node may adopt the lease; null: it ends with its node.
  session text
) WITHOUT ROWID;

CREATE TABLE queue_counts (
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  queued integer NOT NULL,
  running integer NOT NULL,
  PRIMARY KEY (deployment_id, endpoint)
) WITHOUT ROWID;

-- Who used what, by day (of UTC, since 1970).
CREATE TABLE usage (
  deployment_id text NOT NULL,
  day integer NOT NULL,
  endpoint text NOT NULL,
  -- Empty: no token was there.
  token_id text NOT NULL,
  calls integer NOT NULL DEFAULT 0,
  tasks integer NOT NULL DEFAULT 0,
  run_ms integer NOT NULL DEFAULT 0,
  gpu_ms real NOT NULL DEFAULT 0,
  bytes_in integer NOT NULL DEFAULT 0,
  bytes_out integer NOT NULL DEFAULT 0,
  PRIMARY KEY (deployment_id, day, endpoint, token_id)
) WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day);

-- The units that functions reported.
CREATE TABLE usage_units (
  deployment_id text NOT NULL,
  day integer NOT NULL,
  endpoint text NOT NULL,
  token_id text NOT NULL,
  unit text NOT NULL,
  amount real NOT NULL,
  PRIMARY KEY (deployment_id, day, endpoint, token_id, unit)
) WITHOUT ROWID;
CREATE INDEX usage_units_by_day ON usage_units (day);

-- What statements for both databases read: here nothing waits to be folded.
CREATE VIEW usage_now AS SELECT * FROM usage;
CREATE VIEW usage_units_now AS SELECT * FROM usage_units;

-- The last flush of each start of a node, so that one that is repeated adds nothing (usage.ts).
CREATE TABLE usage_flushes (
  recorder text NOT NULL PRIMARY KEY,
  sequence integer NOT NULL,
  day integer NOT NULL
) WITHOUT ROWID;

-- The names of deleted deployments and tokens that usage is of, by their ids.
CREATE TABLE usage_names (
  organization_id text NOT NULL,
  id text NOT NULL,
  -- deployment; or, of a token, organization or personal.
  kind text NOT NULL,
  name text NOT NULL,
  -- When it was deleted.
  day integer NOT NULL,
  PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

--------------------------------------------------------------------------------
-- Large files of tasks
--------------------------------------------------------------------------------

-- Files that stand in the blob store. A row is there before the bytes are,
-- and until after they are gone: nothing can be forgotten there.
CREATE TABLE blobs (
  blob_id text NOT NULL PRIMARY KEY,
  -- How many rows of payload_parts name it.
  reference_count integer NOT NULL,
  -- When it may be deleted; null while anything names it.
  delete_after_ms integer,
  -- Its bytes are being deleted: nothing may name it any more.
  dying integer NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX blobs_dead ON blobs (delete_after_ms) WHERE delete_after_ms IS NOT NULL;

--------------------------------------------------------------------------------
-- Accounts: people, organizations, tokens
--------------------------------------------------------------------------------

-- Numbers that are counted up under the lock of their row.
CREATE TABLE counters (
  name text NOT NULL PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO counters (name, value) VALUES ('setup', 0), ('changes', 0), ('device_logins', 0);

CREATE TABLE users (
  user_id text NOT NULL PRIMARY KEY,
  -- It never changes: memberships have a copy.
  email text NOT NULL UNIQUE,
  display_name text NOT NULL,
  password_hash text,
  created_at_ms bigint NOT NULL,
  -- Whether the address was proven.
  email_verified integer NOT NULL DEFAULT 0,
  -- Whether they operate the platform (docs/decisions).
  operator integer NOT NULL DEFAULT 0
);

-- What OpenID Connect providers call people.
CREATE TABLE identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id text NOT NULL,
  PRIMARY KEY (issuer, subject)
);

CREATE TABLE sessions (
  session_id text NOT NULL PRIMARY KEY,
  digest text NOT NULL UNIQUE,
  user_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  authenticated_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- The browser or program that signed in, in a few words.
  client text NOT NULL DEFAULT '',
  -- Of the last recorded use, or of the sign-in before the first.
  address text NOT NULL DEFAULT '',
  used_at_ms bigint
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at_ms);

-- The one setup link, until it is used.
CREATE TABLE setup_codes (
  digest text NOT NULL PRIMARY KEY,
  created_at_ms bigint NOT NULL
);

CREATE TABLE organizations (
  organization_id text NOT NULL PRIMARY KEY,
  name text NOT NULL UNIQUE,
  display_name text NOT NULL,
  created_at_ms bigint NOT NULL,
  monitoring_enabled integer NOT NULL DEFAULT 0,
  reveal_enabled integer NOT NULL DEFAULT 1,
  -- The lock of the organization: each change of anything in it counts this up.
  locks bigint NOT NULL DEFAULT 0,
  invitation_links_enabled integer NOT NULL DEFAULT 0,
  -- The request of the organization for monitoring tokens: when and by whom; null without one.
  monitoring_asked_at_ms bigint,
  monitoring_asked_by text
);

CREATE TABLE memberships (
  organization_id text NOT NULL,
  user_id text NOT NULL,
  email text NOT NULL,
  role text NOT NULL,
  joined_at_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, user_id)
);
CREATE UNIQUE INDEX memberships_by_email ON memberships (organization_id, email);
CREATE INDEX memberships_by_user ON memberships (user_id);

CREATE TABLE invitations (
  organization_id text NOT NULL,
  invitation_id text NOT NULL UNIQUE,
  digest text NOT NULL UNIQUE,
  email text NOT NULL,
  role text NOT NULL,
  created_by text NOT NULL,
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
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  name text NOT NULL,
  requires_token integer NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  updated_at_ms bigint NOT NULL,
  desired_state text NOT NULL DEFAULT 'running',
  -- The newest one; null before the first.
  target_revision integer,
  min_workers integer NOT NULL DEFAULT 1,
  max_workers integer NOT NULL DEFAULT 2,
  memory_mib integer NOT NULL DEFAULT 512,
  cpu double precision NOT NULL DEFAULT 1,
  -- Names and values, as JSON.
  environment text NOT NULL DEFAULT '{}',
  version integer NOT NULL DEFAULT 1,
  -- Workers have only the secrets that were set at this version of the deployment; 0: all.
  secrets_since integer NOT NULL DEFAULT 0,
  -- The version of the deployment at which a secret was set or removed last; 0: none was.
  secrets_version integer NOT NULL DEFAULT 0,
  -- Where the workers of a deployment may connect to: access and hosts, as JSON.
  network text NOT NULL DEFAULT '{"access":"open","hosts":[]}',
  -- Required labels, as a JSON object.
  requires text NOT NULL DEFAULT '{}',
  -- local, remote or any.
  place text NOT NULL DEFAULT 'any',
  -- The target of scaling: how long its tasks should wait at most.
  queue_time_ms integer NOT NULL DEFAULT 1000,
  -- How long its tasks are kept after their end; 0 leaves it to their endpoints.
  retention_ms integer NOT NULL DEFAULT 0,
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
  organization_id text NOT NULL,
  token_id text NOT NULL,
  kind text NOT NULL,
  -- Whose it is, of personal ones; of others who made it, null for a token.
  user_id text,
  name text NOT NULL,
  description text NOT NULL,
  developer_operations integer NOT NULL,
  protected_endpoint integer NOT NULL,
  monitoring integer NOT NULL,
  all_deployments integer NOT NULL,
  expires_at_ms bigint NOT NULL,
  not_before_ms bigint,
  -- A list, as JSON.
  allowed_networks text NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  updated_at_ms bigint NOT NULL,
  last_used_at_ms bigint,
  last_used_address text,
  version integer NOT NULL,
  -- Access to join workers on other machines.
  worker integer NOT NULL DEFAULT 0,
  -- Access to start such machines.
  launch integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, token_id)
);
CREATE INDEX tokens_by_user ON tokens (user_id, organization_id, token_id);

CREATE TABLE token_deployments (
  organization_id text NOT NULL,
  token_id text NOT NULL,
  deployment_id text NOT NULL,
  -- The deployment's, which never changes.
  name text NOT NULL,
  PRIMARY KEY (organization_id, token_id, deployment_id)
);
CREATE INDEX token_deployments_by_deployment ON token_deployments (deployment_id);

-- The values of a token: the current one, which has no end of its own, and
-- the one before while it lives on. The indexes allow one of each.
CREATE TABLE token_secrets (
  organization_id text NOT NULL,
  token_id text NOT NULL,
  digest text NOT NULL UNIQUE,
  digest_key_id text NOT NULL,
  hint text NOT NULL,
  sealed text,
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
  kind text NOT NULL,
  id text NOT NULL
);

-- Rows are added and never changed. One deed may be an event in several organizations.
CREATE TABLE audit_events (
  organization_id text NOT NULL,
  event_id text NOT NULL,
  time_ms bigint NOT NULL,
  action text NOT NULL,
  actor text NOT NULL,
  actor_id text NOT NULL,
  address text NOT NULL,
  subject_id text NOT NULL,
  subject text NOT NULL,
  -- Names and values, as JSON.
  details text NOT NULL,
  PRIMARY KEY (organization_id, event_id)
);

CREATE TABLE login_codes (
  digest text NOT NULL PRIMARY KEY,
  organization_id text NOT NULL,
  user_id text NOT NULL,
  code_challenge text NOT NULL,
  redirect_uri text NOT NULL,
  host_name text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX login_codes_by_user ON login_codes (organization_id, user_id);
CREATE INDEX login_codes_expiry ON login_codes (expires_at_ms);

CREATE TABLE device_logins (
  device_digest text NOT NULL PRIMARY KEY,
  user_code_digest text NOT NULL UNIQUE,
  host_name text NOT NULL,
  address text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  interval_ms bigint NOT NULL,
  asked_at_ms bigint NOT NULL,
  -- pending, approved or denied; by whom, and for which organization.
  answer text NOT NULL,
  organization_id text,
  user_id text
);
CREATE INDEX device_logins_by_user ON device_logins (organization_id, user_id);
CREATE INDEX device_logins_expiry ON device_logins (expires_at_ms);

--------------------------------------------------------------------------------
-- Hosting: deployments, artifacts, nodes
--------------------------------------------------------------------------------

CREATE TABLE deployment_secrets (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  name text NOT NULL,
  sealed text NOT NULL,
  -- The version of the deployment that set it.
  version integer NOT NULL DEFAULT 0,
  set_at_ms bigint NOT NULL,
  set_by text NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, name)
);

-- Deployments that are no more, and may have left something behind.
CREATE TABLE deleted_deployments (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  deleted_at_ms bigint NOT NULL,
  -- When to look for what it has left.
  look_after_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);
CREATE INDEX deleted_deployments_by_id ON deleted_deployments (deployment_id);
CREATE INDEX deleted_deployments_look ON deleted_deployments (look_after_ms);

CREATE TABLE revisions (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  revision integer NOT NULL,
  digest text NOT NULL,
  rolled_back_to integer,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  -- The version of the deployment that made it.
  version integer NOT NULL DEFAULT 0,
  -- Who confirmed that its code may have the secrets; null: nobody.
  secrets_confirmed_by text,
  secrets_confirmed_at_ms bigint,
  -- Where its code was in git, as JSON; null: not told.
  source text,
  -- When a node first served it; null: none has.
  served_at_ms bigint,
  PRIMARY KEY (organization_id, deployment_id, revision)
);
CREATE INDEX revisions_by_artifact ON revisions (organization_id, digest);

-- Artifacts and versions of models, each while a revision has it or it is kept.
CREATE TABLE artifacts (
  organization_id text NOT NULL,
  digest text NOT NULL,
  index_text text NOT NULL,
  -- A list of names and kinds, as JSON.
  endpoints text NOT NULL,
  files integer NOT NULL,
  size_bytes bigint NOT NULL,
  PRIMARY KEY (organization_id, digest)
);

-- Files in the blob store. A row is there before the bytes are, and until
-- after they are gone: nothing can be forgotten there.
CREATE TABLE artifact_files (
  organization_id text NOT NULL,
  blob_id text NOT NULL,
  sha256 text NOT NULL,
  size_bytes bigint NOT NULL,
  -- uploading; ready; or dying, when nothing may use it any more.
  state text NOT NULL,
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
  organization_id text NOT NULL,
  digest text NOT NULL,
  blob_id text NOT NULL,
  PRIMARY KEY (organization_id, digest, blob_id)
);

-- The models of an artifact, by the digests of their versions.
CREATE TABLE artifact_models (
  organization_id text NOT NULL,
  digest text NOT NULL,
  model_digest text NOT NULL,
  PRIMARY KEY (organization_id, digest, model_digest)
);
CREATE INDEX artifact_models_by_model ON artifact_models (organization_id, model_digest);

-- The sizes of all files of an organization together.
CREATE TABLE artifact_usage (
  organization_id text NOT NULL PRIMARY KEY,
  size_bytes bigint NOT NULL
);

-- Models: weights under a name.
CREATE TABLE models (
  organization_id text NOT NULL,
  name text NOT NULL,
  created_at_ms bigint NOT NULL,
  -- The number of the newest version that it ever had.
  last_version integer NOT NULL,
  PRIMARY KEY (organization_id, name)
);

-- Versions of models. The index of a ready one is in artifacts, by its digest.
CREATE TABLE model_versions (
  organization_id text NOT NULL,
  model text NOT NULL,
  version integer NOT NULL,
  -- importing, ready or failed.
  state text NOT NULL,
  -- Null until it is ready.
  digest text,
  size_bytes bigint NOT NULL,
  files integer NOT NULL,
  -- Where it was fetched from, as its caller named it; empty for one that was pushed.
  source text NOT NULL,
  -- The source as what it was when the import began: the same text is the same files.
  pinned text NOT NULL,
  repository text NOT NULL,
  commit_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  -- A list of texts, as JSON.
  warnings text NOT NULL,
  -- Why it failed.
  reason text NOT NULL,
  -- A token for the source, until the import has ended.
  sealed_token text,
  -- Which run imports it, and until when it has it for itself.
  claim text NOT NULL,
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
  organization_id text NOT NULL,
  model text NOT NULL,
  version integer NOT NULL,
  path text NOT NULL,
  sha256 text NOT NULL,
  size_bytes bigint NOT NULL,
  -- The digest of the whole file, as its source tells it.
  origin text NOT NULL,
  PRIMARY KEY (organization_id, model, version, path)
);
CREATE INDEX model_imported_files_by_origin ON model_imported_files (organization_id, origin);

CREATE TABLE nodes (
  node_id text NOT NULL PRIMARY KEY,
  url text,
  started_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- What it says of itself with each heartbeat, as JSON; null: nothing yet.
  facts text,
  -- The name of its machine, and when the node sent its last heartbeat.
  machine text,
  heard_at_ms bigint
);
CREATE INDEX nodes_expiry ON nodes (expires_at_ms);

-- Machines that take no new work, by their names. Those of nodes are of the organization ''.
CREATE TABLE drained_machines (
  organization_id text NOT NULL,
  machine text NOT NULL,
  drained_at_ms bigint NOT NULL,
  drained_by text NOT NULL,
  PRIMARY KEY (organization_id, machine)
);

-- What each node says of each deployment.
CREATE TABLE deployment_reports (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  node_id text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  revision integer,
  target_revision integer,
  version integer NOT NULL,
  workers integer NOT NULL,
  -- The workers of the node, as JSON; null until the node reports some.
  running text,
  PRIMARY KEY (organization_id, deployment_id, node_id)
);
CREATE INDEX deployment_reports_by_node ON deployment_reports (node_id);

-- Which launcher starts the machines of a deployment, until when, and what it says of them.
CREATE TABLE launchers (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  launcher text NOT NULL,
  token_id text NOT NULL,
  expires_at_ms bigint NOT NULL,
  -- As JSON.
  report text NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

-- What a worker of each deployment told of its service last.
CREATE TABLE manifests (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  -- Digest of all that it may depend on: the artifact, settings and secrets.
  made_of text NOT NULL,
  -- The form that nodes of its time wrote.
  format integer NOT NULL,
  -- 1: a worker needs nothing but the files of the artifact, on whatever node.
  files_only integer NOT NULL,
  -- As JSON.
  manifest text NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

-- Addresses that are told how the tasks of a deployment end.
CREATE TABLE webhooks (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  name text NOT NULL,
  webhook_id text NOT NULL,
  url text NOT NULL,
  -- Bit n: told of tasks that end with the status n.
  events integer NOT NULL,
  -- Empty: of all endpoints.
  endpoint text NOT NULL,
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
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  delivery_id text NOT NULL,
  webhook_id text NOT NULL,
  -- The status that the task ended with; 16: alerts fire, 17: alerts have cleared; 0: a test.
  event integer NOT NULL,
  task_id text NOT NULL,
  endpoint text NOT NULL,
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
  organization_id text NOT NULL,
  name text NOT NULL,
  budget_id text NOT NULL UNIQUE,
  -- calls, tasks, run_seconds, gpu_seconds, bytes_in, bytes_out, or a unit.
  measure text NOT NULL,
  amount double precision NOT NULL,
  -- day or month.
  period text NOT NULL,
  -- Whose use it bounds: a name, and an id; empty: all.
  deployment text NOT NULL,
  token_id text NOT NULL,
  version integer NOT NULL,
  -- What was used since this day, as it was counted last.
  used double precision NOT NULL,
  used_from_day integer NOT NULL,
  -- The part of it that was used before this day, which does not change any more.
  settled double precision NOT NULL,
  settled_to_day integer NOT NULL,
  counted_at_ms bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  updated_at_ms bigint NOT NULL,
  updated_by text NOT NULL,
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
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  name text NOT NULL,
  endpoint text NOT NULL,
  -- JSON.
  arguments text NOT NULL,
  cron text NOT NULL,
  time_zone text NOT NULL,
  -- skip, queue or replace.
  overlap text NOT NULL,
  -- none, one or all.
  catch_up text NOT NULL,
  paused integer NOT NULL,
  -- 1: made by a deploy, and kept as its tessera.yaml says.
  declared integer NOT NULL,
  -- Changes with what it says, so that nobody fires what they read before.
  version integer NOT NULL,
  -- The time to fire next; null while it is paused.
  next_at_ms bigint,
  -- The task that it submitted last, and its time; null: none yet.
  task_id text,
  task_at_ms bigint,
  -- What became of its last time: task, skipped, missed or refused; null: none has come.
  outcome text,
  outcome_at_ms bigint,
  message text,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  updated_at_ms bigint NOT NULL,
  updated_by text NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, name)
);
CREATE INDEX schedules_due ON schedules (next_at_ms, deployment_id) WHERE next_at_ms IS NOT NULL;

-- Endpoints whose tasks nobody claims until they are resumed.
CREATE TABLE paused_endpoints (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  endpoint text NOT NULL,
  paused_at_ms bigint NOT NULL,
  paused_by text NOT NULL,
  PRIMARY KEY (deployment_id, endpoint)
) WITHOUT ROWID;

-- Counted up under the lock of the row, so that lines appear in their order.
CREATE TABLE deployment_log_sequences (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  last_sequence bigint NOT NULL,
  PRIMARY KEY (organization_id, deployment_id)
);

CREATE TABLE deployment_logs (
  organization_id text NOT NULL,
  deployment_id text NOT NULL,
  sequence bigint NOT NULL,
  time_ms bigint NOT NULL,
  node_id text NOT NULL,
  worker text NOT NULL,
  revision integer NOT NULL,
  stream text NOT NULL,
  line text NOT NULL,
  -- info, warn or error; empty where nobody said it.
  level text NOT NULL DEFAULT '',
  -- The task whose function wrote the line; empty for others.
  task_id text NOT NULL DEFAULT '',
  PRIMARY KEY (organization_id, deployment_id, sequence)
);

--------------------------------------------------------------------------------
-- Metrics of nodes, for each other and over time
--------------------------------------------------------------------------------

CREATE TABLE metric_samples (
  organization_id text NOT NULL,
  node_id text NOT NULL,
  layout_id text NOT NULL,
  layout text NOT NULL,
  -- By the node's clock.
  taken_at_ms bigint NOT NULL,
  samples text NOT NULL,
  -- By the database's clock, where there are several nodes.
  written_at_ms bigint NOT NULL,
  PRIMARY KEY (organization_id, node_id)
);
CREATE INDEX metric_samples_by_node ON metric_samples (node_id);

CREATE TABLE metric_history (
  organization_id text NOT NULL,
  -- Empty for all deployments of the organization together.
  deployment_id text NOT NULL,
  resolution_ms bigint NOT NULL,
  -- By the node's clock.
  began_at_ms bigint NOT NULL,
  -- Which start of which node measured it.
  recorder text NOT NULL,
  -- JSON; the format is that of src/metrics/history/.
  platform text NOT NULL,
  custom text NOT NULL,
  PRIMARY KEY (organization_id, deployment_id, resolution_ms, began_at_ms, recorder)
);
CREATE INDEX metric_history_by_age ON metric_history (resolution_ms, began_at_ms);
