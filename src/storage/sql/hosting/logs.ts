/** Appends and reads log lines of deployments. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { LogLine, Logs, NewLogLine } from "../../hosting/logs.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Log lines kept of each deployment. */
const MAX_KEPT_LOG_LINES = 10_000;

/** One stored log line, cut beyond. */
const MAX_LOG_LINE_CHARACTERS = 8_000;

/** Log lines written by one statement. */
const MAX_LOG_LINES_PER_STATEMENT = 100;

const COLUMNS = "sequence, time_ms, node_id, worker, revision, stream, level, task_id, line";

export function* appendLogs({
  organizationId,
  deploymentId,
  nodeId,
  lines,
}: Parameters<HostingStorage["appendLogs"]>[0]): Operation<void> {
  const kept = lines.slice(-MAX_KEPT_LOG_LINES);
  if (kept.length === 0) {
    return;
  }
  // The row's lock is held until the commit, so lines with higher numbers
  // become visible later.
  const [counter] = yield* query<{ last_sequence: number }>(
    `INSERT INTO deployment_log_sequences (organization_id, deployment_id, last_sequence)
     SELECT organization_id, deployment_id, CAST(? AS bigint) FROM deployments
     WHERE organization_id = ? AND deployment_id = ?
     ON CONFLICT (organization_id, deployment_id) DO UPDATE
       SET last_sequence = deployment_log_sequences.last_sequence + excluded.last_sequence
     RETURNING last_sequence`,
    kept.length,
    organizationId,
    deploymentId,
  );
  if (counter === undefined) {
    return;
  }
  const last = counter.last_sequence;
  const first = last - kept.length + 1;
  const rows = kept.map(({ timeMs, worker, revision, stream, level, taskId, text }, index) => [
    organizationId,
    deploymentId,
    first + index,
    timeMs,
    nodeId,
    worker,
    revision,
    stream,
    level,
    taskId,
    text.slice(0, MAX_LOG_LINE_CHARACTERS),
  ]);
  for (const piece of pieces(rows, MAX_LOG_LINES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO deployment_logs (organization_id, deployment_id, ${COLUMNS})
       VALUES ${placeholders(piece.length, 11)}`,
      ...piece.flat(),
    );
  }
  yield* query(
    "DELETE FROM deployment_logs WHERE organization_id = ? AND deployment_id = ? AND sequence <= ?",
    organizationId,
    deploymentId,
    last - MAX_KEPT_LOG_LINES,
  );
}

interface LineRow {
  readonly sequence: number;
  readonly time_ms: number;
  readonly node_id: string;
  readonly worker: string;
  readonly revision: number;
  readonly stream: NewLogLine["stream"];
  readonly level: NewLogLine["level"] | "";
  readonly task_id: string;
  readonly line: string;
}

export function* readLogs({
  organizationId,
  deploymentId,
  afterSequence,
  limit,
}: Parameters<HostingStorage["readLogs"]>[0]): Operation<Awaited<ReturnType<Logs["readLogs"]>>> {
  const [counter] = yield* query<{ last_sequence: number }>(
    `SELECT last_sequence FROM deployment_log_sequences
     WHERE organization_id = ? AND deployment_id = ?`,
    organizationId,
    deploymentId,
  );
  const lastSequence = counter?.last_sequence ?? 0;
  const rows = yield* query<LineRow>(
    `SELECT ${COLUMNS} FROM deployment_logs
     WHERE organization_id = ? AND deployment_id = ? AND sequence > ? AND sequence <= ?
     ORDER BY sequence ${afterSequence === undefined ? "DESC" : ""} LIMIT ?`,
    organizationId,
    deploymentId,
    afterSequence ?? 0,
    lastSequence,
    limit,
  );
  const lines = rows.map(toLine);
  return { lines: afterSequence === undefined ? lines.reverse() : lines, lastSequence };
}

function toLine(row: LineRow): LogLine {
  return {
    sequence: row.sequence,
    timeMs: row.time_ms,
    nodeId: row.node_id,
    worker: row.worker,
    revision: row.revision,
    stream: row.stream,
    level: row.level || "info",
    taskId: row.task_id,
    text: row.line,
  };
}
