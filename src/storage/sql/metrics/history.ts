/** Stores, reads and deletes what nodes measured over time. */
import type { HistoryQuestion, HistoryRow, HistoryValues } from "../../metrics/metrics.ts";
import { type Operation, pieces, placeholders, prepared, query } from "../operation.ts";

/** Rows of metrics over time that one statement writes. */
const MAX_HISTORY_ROWS_PER_STATEMENT = 100;

export function* putHistory({ rows }: { readonly rows: readonly HistoryRow[] }): Operation<void> {
  const values = rows.map((row) => [
    row.organizationId,
    row.deploymentId,
    row.resolutionMs,
    row.beganAtMs,
    row.recorder,
    row.platform,
    row.custom,
  ]);
  for (const piece of pieces(values, MAX_HISTORY_ROWS_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO metric_history (organization_id, deployment_id, resolution_ms, began_at_ms,
         recorder, platform, custom)
       VALUES ${placeholders(piece.length, 7)}
       ON CONFLICT (organization_id, deployment_id, resolution_ms, began_at_ms, recorder)
       DO UPDATE SET platform = excluded.platform, custom = excluded.custom`,
      ...piece.flat(),
    );
  }
}

interface StoredRow {
  readonly began_at_ms: number;
  readonly recorder: string;
  readonly platform: string;
  readonly custom: string;
}

export function* readHistory({
  organizationId,
  deploymentId,
  resolutionMs,
  fromMs,
  toMs,
  after,
  withCustom,
  limit,
}: HistoryQuestion): Operation<HistoryValues[]> {
  const rows = yield* prepared<StoredRow>(
    withCustom ? "read_history_custom" : "read_history",
    `SELECT began_at_ms, recorder, platform, ${withCustom ? "custom" : "'' AS custom"}
     FROM metric_history
     WHERE organization_id = ? AND deployment_id = ? AND resolution_ms = ?
       AND (began_at_ms, recorder) > (?, ?) AND began_at_ms < ?
     ORDER BY began_at_ms, recorder LIMIT ?`,
    organizationId,
    deploymentId,
    resolutionMs,
    // No recorder is named by the empty text, so this begins with the first row.
    after?.beganAtMs ?? fromMs,
    after?.recorder ?? "",
    toMs,
    limit,
  );
  return rows.map((row) => ({
    beganAtMs: row.began_at_ms,
    recorder: row.recorder,
    platform: row.platform,
    custom: row.custom,
  }));
}

export function* pruneHistory({
  resolutionMs,
  beforeMs,
  limit,
}: {
  readonly resolutionMs: number;
  readonly beforeMs: number;
  readonly limit: number;
}): Operation<number> {
  const key = "organization_id, deployment_id, resolution_ms, began_at_ms, recorder";
  const gone = yield* query(
    `DELETE FROM metric_history WHERE (${key}) IN (
       SELECT ${key} FROM metric_history
       WHERE resolution_ms = ? AND began_at_ms < ? ORDER BY began_at_ms LIMIT ?)
     RETURNING began_at_ms`,
    resolutionMs,
    beforeMs,
    limit,
  );
  return gone.length;
}
