/**
 * The schema of shared samples, for both databases. `text` is the SQL type of
 * text; see `accounts/schema.ts`. In Postgres the table is unlogged: it is
 * written constantly, and its content is stale after a few seconds.
 */
export function metricsSchema(text: string, kind: "" | "UNLOGGED" = ""): string {
  return `
  CREATE ${kind} TABLE metric_samples (
    organization_id ${text} NOT NULL,
    node_id ${text} NOT NULL,
    layout_id ${text} NOT NULL,
    layout ${text} NOT NULL,
    -- By the node's clock.
    taken_at_ms bigint NOT NULL,
    samples ${text} NOT NULL,
    -- By the database's clock, where there are several nodes.
    written_at_ms bigint NOT NULL,
    PRIMARY KEY (organization_id, node_id)
  );
  CREATE INDEX metric_samples_by_node ON metric_samples (node_id);
  `;
}

/**
 * The schema of what nodes measured over time. Its rows have their place by
 * time within a deployment, so that a range is read in one go.
 */
export function historySchema(text: string): string {
  return `
  CREATE TABLE metric_history (
    organization_id ${text} NOT NULL,
    -- Empty for all deployments of the organization together.
    deployment_id ${text} NOT NULL,
    resolution_ms bigint NOT NULL,
    -- By the node's clock.
    began_at_ms bigint NOT NULL,
    -- Which start of which node measured it.
    recorder ${text} NOT NULL,
    -- JSON; the format is that of src/metrics/history/.
    platform ${text} NOT NULL,
    custom ${text} NOT NULL,
    PRIMARY KEY (organization_id, deployment_id, resolution_ms, began_at_ms, recorder)
  );
  CREATE INDEX metric_history_by_age ON metric_history (resolution_ms, began_at_ms);
  `;
}
