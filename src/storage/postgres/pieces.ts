/** The pieces of streamed results, each of both operations in one statement. */
import { FORMS, MAX_RUNS_PER_PAGE, piecesOf, runsOf } from "../piece-runs.ts";
import type { PieceAppend, PiecePage, PieceStorage } from "../pieces.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { type PostgresRow, prepared, type Session } from "./session.ts";

/**
 * `$1`: the appends; `$2`: their runs, without the bytes, which are `$3`. The lock keeps a task
 * from ending beside this statement. One that goes back to the queue then may keep these pieces,
 * of an attempt that nobody reads once another has begun.
 */
const APPEND = prepared(
  "append_pieces",
  `WITH given AS (
     SELECT * FROM json_to_recordset($1) AS given (n integer, deployment_id text, task_id text,
       lease_id text, attempt integer, first integer)
   ), held AS (
     SELECT given.n, given.deployment_id, given.task_id, given.attempt, given.first
     FROM given JOIN live_tasks USING (deployment_id, task_id)
     WHERE live_tasks.lease_id = given.lease_id AND live_tasks.attempt = given.attempt
     FOR KEY SHARE OF live_tasks
   ), earlier AS (
     DELETE FROM task_pieces USING held
     WHERE held.first = 1 AND task_pieces.deployment_id = held.deployment_id
       AND task_pieces.task_id = held.task_id AND task_pieces.attempt < held.attempt
   ), appended AS (
     INSERT INTO task_pieces
       (deployment_id, task_id, attempt, last_sequence, pieces, form, bytes, data)
     SELECT deployment_id, task_id, attempt, runs.last, runs.count, runs.form,
       octet_length(run_data.data), run_data.data
     FROM json_to_recordset($2) AS runs (n integer, run integer, last integer, count integer,
       form smallint)
     JOIN unnest($3::bytea[]) WITH ORDINALITY AS run_data (data, run) USING (run)
     JOIN held USING (n)
     ON CONFLICT DO NOTHING
   )
   SELECT n FROM held`,
);

export async function appendPieces(
  session: Session,
  { appends }: Parameters<PieceStorage["appendPieces"]>[0],
): Promise<boolean[]> {
  const runs = appends.flatMap((one, n) =>
    runsOf(one).map((run) => ({ n, form: FORMS.indexOf(one.form), ...run })),
  );
  const rows = await session.query(
    APPEND,
    JSON.stringify(appends.map(toRow)),
    JSON.stringify(runs.map(({ data, ...run }, index) => ({ ...run, run: index + 1 }))),
    runs.map(({ data }) => data),
  );
  const kept = new Set(rows.map(({ n }) => Number(n)));
  return appends.map((_, n) => kept.has(n));
}

function toRow({ attempt, first }: PieceAppend, n: number) {
  return {
    n,
    deployment_id: attempt.deploymentId,
    task_id: attempt.taskId,
    lease_id: attempt.leaseId,
    attempt: attempt.attempt,
    first,
  };
}

/** One row for each run, with the task; one row without a run where there are none. */
const READ = prepared(
  "read_pieces",
  `SELECT task.*, runs.run_last, runs.run_pieces, runs.run_form, runs.run_data
   FROM (SELECT ${TASK_COLUMNS} FROM tasks WHERE deployment_id = $1 AND task_id = $2) AS task
   LEFT JOIN LATERAL (
     SELECT last_sequence AS run_last, pieces AS run_pieces, form AS run_form, data AS run_data
     FROM (
       SELECT *, sum(bytes) OVER (ORDER BY last_sequence) - bytes AS bytes_before FROM (
         SELECT last_sequence, pieces, form, bytes, data FROM task_pieces
         WHERE deployment_id = $1 AND task_id = $2 AND attempt = task.attempt
           AND last_sequence > CASE WHEN task.attempt = $3 THEN $4::integer ELSE 0 END
         ORDER BY last_sequence LIMIT ${MAX_RUNS_PER_PAGE}) AS next
     ) AS counted WHERE bytes_before < $5) AS runs ON true
   ORDER BY runs.run_last`,
);

export async function readPieces(
  session: Session,
  { deploymentId, taskId, after, maxBytes }: Parameters<PieceStorage["readPieces"]>[0],
): Promise<PiecePage | undefined> {
  const { attempt, sequence } = after;
  const rows = await session.query(READ, deploymentId, taskId, attempt, sequence, maxBytes);
  const [first] = rows;
  if (first === undefined) {
    return undefined;
  }
  const task = toTask(first);
  const runs = rows.filter(({ run_last }) => run_last !== null).map(toRun);
  const form = runs.length > 0 ? FORMS[Number(first.run_form)] : undefined;
  const from = attempt === task.attempt ? sequence : 0;
  const bytes = runs.reduce((sum, { data }) => sum + data.length, 0);
  return {
    task,
    form,
    pieces: form ? runs.flatMap((run) => piecesOf(run, form, from)) : [],
    more: runs.length === MAX_RUNS_PER_PAGE || bytes >= maxBytes,
  };
}

function toRun({ run_last, run_pieces, run_data }: PostgresRow) {
  return { last: Number(run_last), count: Number(run_pieces), data: run_data as Buffer };
}
