/** The table of all operations of the metrics storage port. */
import type { ForeignSamples, MetricsStorage, SampleRow } from "../../metrics/metrics.ts";
import { type Operation, type OperationsOf, prepared, query } from "../operation.ts";
import { pruneHistory, putHistory, readHistory } from "./history.ts";

/** Operations whose `nowMs` is the database's time where nodes share it. */
export const TIMED: ReadonlySet<keyof MetricsStorage> = new Set([
  "putSamples",
  "listSamples",
  "pruneSamples",
]);

/** All operations of the port. None needs a transaction. */
export const METRICS_OPERATIONS: OperationsOf<MetricsStorage> = {
  *putSamples({ nodeId, nowMs, rows }) {
    const refused: string[] = [];
    for (const row of rows) {
      if (!(yield* putRow(nodeId, nowMs, row))) {
        refused.push(row.organizationId);
      }
    }
    return refused;
  },

  *listSamples({ organizationId, exceptNodeId, nowMs, withinMs }) {
    const rows = yield* prepared<StoredRow>(
      "list_samples",
      `SELECT node_id, layout_id, taken_at_ms, samples FROM metric_samples
       WHERE organization_id = ? AND node_id <> ? AND written_at_ms >= ? ORDER BY node_id`,
      organizationId,
      exceptNodeId,
      nowMs - withinMs,
    );
    return rows.map(
      (row): ForeignSamples => ({
        nodeId: row.node_id,
        layoutId: row.layout_id,
        takenAtMs: row.taken_at_ms,
        samples: row.samples,
      }),
    );
  },

  *getLayout({ organizationId, nodeId, layoutId }) {
    const [row] = yield* query<{ layout: string }>(
      "SELECT layout FROM metric_samples WHERE organization_id = ? AND node_id = ? AND layout_id = ?",
      organizationId,
      nodeId,
      layoutId,
    );
    return row?.layout;
  },

  *dropSamples({ nodeId, organizationId }) {
    if (organizationId === undefined) {
      yield* query("DELETE FROM metric_samples WHERE node_id = ?", nodeId);
    } else {
      yield* query(
        "DELETE FROM metric_samples WHERE organization_id = ? AND node_id = ?",
        organizationId,
        nodeId,
      );
    }
  },

  *pruneSamples({ nowMs, afterMs }) {
    yield* query("DELETE FROM metric_samples WHERE written_at_ms < ?", nowMs - afterMs);
  },

  putHistory,
  readHistory,
  pruneHistory,
};

interface StoredRow {
  readonly node_id: string;
  readonly layout_id: string;
  readonly taken_at_ms: number;
  readonly samples: string;
}

/** Replaces a row; false when the layout was neither passed nor stored. */
function* putRow(
  nodeId: string,
  nowMs: number,
  { organizationId, layoutId, layout, takenAtMs, samples }: SampleRow,
): Operation<boolean> {
  if (layout === undefined) {
    const updated = yield* prepared(
      "update_samples",
      `UPDATE metric_samples SET taken_at_ms = ?, samples = ?, written_at_ms = ?
       WHERE organization_id = ? AND node_id = ? AND layout_id = ? RETURNING node_id`,
      takenAtMs,
      samples,
      nowMs,
      organizationId,
      nodeId,
      layoutId,
    );
    return updated.length > 0;
  }
  yield* query(
    `INSERT INTO metric_samples
       (organization_id, node_id, layout_id, layout, taken_at_ms, samples, written_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (organization_id, node_id) DO UPDATE SET
       layout_id = excluded.layout_id, layout = excluded.layout,
       taken_at_ms = excluded.taken_at_ms, samples = excluded.samples,
       written_at_ms = excluded.written_at_ms`,
    organizationId,
    nodeId,
    layoutId,
    layout,
    takenAtMs,
    samples,
    nowMs,
  );
  return true;
}
