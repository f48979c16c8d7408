/**
 * The schema of hosting, for both databases, with its additions to the
 * accounts' tables. `text` is the SQL type of text; see `accounts/schema.ts`.
 */
export function hostingSchema(text: string): string {
  return `
  ALTER TABLE deployments ADD COLUMN desired_state ${text} NOT NULL DEFAULT 'running';
  -- The newest one; null before the first.
  ALTER TABLE deployments ADD COLUMN target_revision integer;
  ALTER TABLE deployments ADD COLUMN min_workers integer NOT NULL DEFAULT 1;
  ALTER TABLE deployments ADD COLUMN max_workers integer NOT NULL DEFAULT 2;
  ALTER TABLE deployments ADD COLUMN memory_mib integer NOT NULL DEFAULT 512;
  ALTER TABLE deployments ADD COLUMN cpu double precision NOT NULL DEFAULT 1;
  -- Names and values, as JSON.
  ALTER TABLE deployments ADD COLUMN environment ${text} NOT NULL DEFAULT '{}';
  ALTER TABLE deployments ADD COLUMN version integer NOT NULL DEFAULT 1;
  CREATE UNIQUE INDEX deployments_by_id ON deployments (deployment_id);

  CREATE TABLE deployment_secrets (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    name ${text} NOT NULL,
    sealed ${text} NOT NULL,
    PRIMARY KEY (organization_id, deployment_id, name)
  );

  -- Deployments that are no more, and may have left something behind.
  CREATE TABLE deleted_deployments (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    deleted_at_ms bigint NOT NULL,
    -- When to look for what it has left.
    look_after_ms bigint NOT NULL,
    PRIMARY KEY (organization_id, deployment_id)
  );
  CREATE INDEX deleted_deployments_by_id ON deleted_deployments (deployment_id);
  CREATE INDEX deleted_deployments_look ON deleted_deployments (look_after_ms);

  CREATE TABLE revisions (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    revision integer NOT NULL,
    digest ${text} NOT NULL,
    rolled_back_to integer,
    created_at_ms bigint NOT NULL,
    created_by ${text} NOT NULL,
    PRIMARY KEY (organization_id, deployment_id, revision)
  );
  CREATE INDEX revisions_by_artifact ON revisions (organization_id, digest);

  -- Artifacts, each while a revision has it.
  CREATE TABLE artifacts (
    organization_id ${text} NOT NULL,
    digest ${text} NOT NULL,
    index_text ${text} NOT NULL,
    -- A list of names and kinds, as JSON.
    endpoints ${text} NOT NULL,
    files integer NOT NULL,
    size_bytes bigint NOT NULL,
    PRIMARY KEY (organization_id, digest)
  );

  -- Files in the blob store. A row is there before the bytes are, and until
  -- after they are gone: nothing can be forgotten there.
  CREATE TABLE artifact_files (
    organization_id ${text} NOT NULL,
    blob_id ${text} NOT NULL,
    sha256 ${text} NOT NULL,
    size_bytes bigint NOT NULL,
    -- uploading; ready; or dying, when nothing may use it any more.
    state ${text} NOT NULL,
    -- How many artifacts have it.
    reference_count integer NOT NULL DEFAULT 0,
    -- When it may be deleted; null while an artifact has it.
    delete_after_ms bigint,
    PRIMARY KEY (organization_id, blob_id)
  );
  CREATE UNIQUE INDEX artifact_files_ready ON artifact_files (organization_id, sha256)
    WHERE state = 'ready';
  CREATE INDEX artifact_files_unused ON artifact_files (delete_after_ms)
    WHERE delete_after_ms IS NOT NULL;

  CREATE TABLE artifact_references (
    organization_id ${text} NOT NULL,
    digest ${text} NOT NULL,
    blob_id ${text} NOT NULL,
    PRIMARY KEY (organization_id, digest, blob_id)
  );

  -- The sizes of all files of an organization together.
  CREATE TABLE artifact_usage (
    organization_id ${text} NOT NULL PRIMARY KEY,
    size_bytes bigint NOT NULL
  );

  CREATE TABLE nodes (
    node_id ${text} NOT NULL PRIMARY KEY,
    url ${text},
    started_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  CREATE INDEX nodes_expiry ON nodes (expires_at_ms);

  -- What each node says of each deployment.
  CREATE TABLE deployment_reports (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    node_id ${text} NOT NULL,
    status ${text} NOT NULL,
    reason ${text} NOT NULL,
    revision integer,
    target_revision integer,
    workers integer NOT NULL,
    PRIMARY KEY (organization_id, deployment_id, node_id)
  );
  CREATE INDEX deployment_reports_by_node ON deployment_reports (node_id);

  -- Counted up under the lock of the row, so that lines appear in their order.
  CREATE TABLE deployment_log_sequences (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    last_sequence bigint NOT NULL,
    PRIMARY KEY (organization_id, deployment_id)
  );
  CREATE TABLE deployment_logs (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    sequence bigint NOT NULL,
    time_ms bigint NOT NULL,
    node_id ${text} NOT NULL,
    worker ${text} NOT NULL,
    revision integer NOT NULL,
    stream ${text} NOT NULL,
    line ${text} NOT NULL,
    PRIMARY KEY (organization_id, deployment_id, sequence)
  );
  `;
}

/** Additions that say which secrets a revision may have; see `secrets.ts`. */
export function confirmationSchema(text: string): string {
  return `
  -- Workers have only the secrets that were set at this version of the deployment; 0: all.
  ALTER TABLE deployments ADD COLUMN secrets_since integer NOT NULL DEFAULT 0;
  -- The version of the deployment that set it.
  ALTER TABLE deployment_secrets ADD COLUMN version integer NOT NULL DEFAULT 0;
  -- The version of the deployment that made it.
  ALTER TABLE revisions ADD COLUMN version integer NOT NULL DEFAULT 0;
  -- Who confirmed that its code may have the secrets; null: nobody.
  ALTER TABLE revisions ADD COLUMN secrets_confirmed_by ${text};
  ALTER TABLE revisions ADD COLUMN secrets_confirmed_at_ms bigint;
  -- Revisions from before all had the secrets.
  UPDATE revisions SET secrets_confirmed_by = created_by, secrets_confirmed_at_ms = created_at_ms;
  `;
}

/** What a node says of itself with each heartbeat, for the operator. */
export function nodeFactsSchema(text: string): string {
  return `
  -- As JSON; null for a node of an earlier version.
  ALTER TABLE nodes ADD COLUMN facts ${text};
  `;
}

/** What lines of deployments' logs are found by. */
export function logLevelsSchema(text: string): string {
  return `
  -- info, warn or error; empty for lines of earlier versions.
  ALTER TABLE deployment_logs ADD COLUMN level ${text} NOT NULL DEFAULT '';
  -- The task whose function wrote the line; empty for others.
  ALTER TABLE deployment_logs ADD COLUMN task_id ${text} NOT NULL DEFAULT '';
  `;
}

/** The target of scaling: how long tasks of a deployment should wait at most. */
export function queueTimeSchema(): string {
  return `
  ALTER TABLE deployments ADD COLUMN queue_time_ms integer NOT NULL DEFAULT 1000;
  `;
}

/** Where workers run: what deployments require, and what each node tells of its workers. */
export function placementSchema(text: string): string {
  return `
  -- Required labels, as a JSON object.
  ALTER TABLE deployments ADD COLUMN requires ${text} NOT NULL DEFAULT '{}';
  -- local, remote or any.
  ALTER TABLE deployments ADD COLUMN place ${text} NOT NULL DEFAULT 'any';
  -- The workers of the node, as JSON; null: the node has told of none.
  ALTER TABLE deployment_reports ADD COLUMN running ${text};
  `;
}

/** How long tasks of a deployment are kept after their end; 0 leaves it to their endpoints. */
export function retentionSchema(integer: string): string {
  return `
  ALTER TABLE deployments ADD COLUMN retention_ms ${integer} NOT NULL DEFAULT 0;
  `;
}
