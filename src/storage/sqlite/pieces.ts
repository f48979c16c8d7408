/** The pieces of streamed results. */
import { FORMS, MAX_RUNS_PER_PAGE, piecesOf, runsOf } from "../piece-runs.ts";
import type { PieceAppend, PieceForm, PiecePage, PieceStorage, StoredPiece } from "../pieces.ts";
import type { SqliteDatabase } from "./database.ts";
import { readTask } from "./read.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

export function appendPieces(
  db: SqliteDatabase,
  { appends }: Parameters<PieceStorage["appendPieces"]>[0],
): boolean[] {
  return appends.map((one) => append(db, one));
}

function append(db: SqliteDatabase, { attempt, form, first, pieces }: PieceAppend): boolean {
  const { deploymentId, taskId, leaseId, attempt: number } = attempt;
  const current = db.get(
    `SELECT 1 FROM tasks WHERE deployment_id = ? AND task_id = ? AND lease_id = ? AND attempt = ?
       AND status = ${STATUS.running}`,
    deploymentId,
    taskId,
    leaseId,
    number,
  );
  if (current === undefined) {
    return false;
  }
  if (first === 1 && number > 1) {
    db.run(
      "DELETE FROM task_pieces WHERE deployment_id = ? AND task_id = ? AND attempt < ?",
      deploymentId,
      taskId,
      number,
    );
  }
  for (const { last, count, data } of runsOf({ first, pieces })) {
    db.run(
      `INSERT INTO task_pieces
         (deployment_id, task_id, attempt, last_sequence, pieces, form, bytes, data)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      deploymentId,
      taskId,
      number,
      last,
      count,
      FORMS.indexOf(form),
      data.length,
      data,
    );
  }
  return true;
}

export function readPieces(
  db: SqliteDatabase,
  { deploymentId, taskId, after, maxBytes }: Parameters<PieceStorage["readPieces"]>[0],
): PiecePage | undefined {
  const task = readTask(db, { deploymentId, taskId });
  if (task === undefined) {
    return undefined;
  }
  const pieces: StoredPiece[] = [];
  let form: PieceForm | undefined;
  let sequence = after.attempt === task.attempt ? after.sequence : 0;
  let bytes = 0;
  // Row by row, so that no more is read than is answered.
  for (let runs = 0; runs < MAX_RUNS_PER_PAGE && bytes < maxBytes; runs += 1) {
    const row = db.get(
      `SELECT last_sequence, pieces, form, data FROM task_pieces
       WHERE deployment_id = ? AND task_id = ? AND attempt = ? AND last_sequence > ?
       ORDER BY last_sequence LIMIT 1`,
      deploymentId,
      taskId,
      task.attempt,
      sequence,
    );
    if (row === undefined) {
      return { task, form, pieces, more: false };
    }
    form = FORMS[Number(row.form)] ?? "json";
    const run = toRun(row);
    pieces.push(...piecesOf(run, form, sequence));
    sequence = run.last;
    bytes += run.data.length;
  }
  return { task, form, pieces, more: true };
}

function toRun(row: SqliteRow) {
  const { buffer, byteOffset, byteLength } = row.data as Uint8Array;
  return {
    last: Number(row.last_sequence),
    count: Number(row.pieces),
    data: Buffer.from(buffer, byteOffset, byteLength),
  };
}
