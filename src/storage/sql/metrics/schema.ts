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
