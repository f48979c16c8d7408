/** Searches tasks of several deployments, and counts them, with bounded scans (`task-search.ts`). */
import type { SQLInputValue } from "node:sqlite";
import type { StateCounts, TaskCountQuery, TaskSearchPage, TaskSearchQuery } from "../listing.ts";
import type { TaskKey, TaskKeyPage } from "../storage.ts";
import { storedStatuses } from "../stored.ts";
import {
  countedRows,
  countsOf,
  keyOf,
  MAX_SHOWN_CHARACTERS,
  pageOf,
  pageOfKeys,
  scannedRows,
  sourceOf,
  storedErrorText,
  storedText,
} from "../task-search.ts";
import type { SqliteDatabase } from "./database.ts";
import { hasTags, TAGGED, TASK_COLUMNS, tagsParameter, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** Sorts after every id. */
const END = "~";

// Statements of this file have the same numbers for the same values; a statement need not use all.

const OF_DEPLOYMENT = "deployment_id = ?1 AND task_id < ?2 AND task_id >= ?3";

const SOURCE = {
  all: `tasks WHERE ${OF_DEPLOYMENT}`,
  live: `tasks WHERE ${OF_DEPLOYMENT}`,
  unsuccessful: `tasks INDEXED BY tasks_unsuccessful WHERE status >= 4 AND ${OF_DEPLOYMENT}`,
  retries: `tasks INDEXED BY tasks_retries WHERE retry_of = ?4 AND ${OF_DEPLOYMENT}`,
  tagged: `${TAGGED} ${OF_DEPLOYMENT}`,
};

type RowFilter = Pick<TaskSearchQuery, "text" | "errorContains" | "endpoint" | "key" | "tags">;

/**
 * Whether a row has the text of ?6 (in JSON ?7), the error of ?8, the key of ?9, the tags of ?10,
 * and the endpoint of ?11. Only what is asked for is named: other columns may stand far from the index.
 */
function fits({ text, errorContains, key, tags }: RowFilter): string {
  const hasText = `(instr(task_id, ?6) > 0 OR instr(lower(endpoint), ?6) > 0
    OR instr(lower(coalesce(arguments, arguments_preview)), ?6) > 0
    OR instr(lower(coalesce(arguments, arguments_preview)), ?7) > 0
    OR instr(lower(substr(failure, instr(failure, '"message":') + 10)), ?7) > 0)`;
  const parts = [
    "(?11 IS NULL OR endpoint = ?11)",
    ...(key === undefined ? [] : ["key = ?9"]),
    ...(errorContains === undefined ? [] : ["instr(lower(failure), ?8) > 0"]),
    ...(text === undefined ? [] : [hasText]),
    ...(tags === undefined ? [] : [hasTags("?10")]),
  ];
  return parts.join(" AND ");
}

function fitting({ text, errorContains, endpoint, key, tags }: RowFilter): SQLInputValue[] {
  const stored = storedText(text);
  return [
    stored?.plain ?? null,
    stored?.json ?? null,
    storedErrorText(errorContains),
    key ?? null,
    tags === undefined ? null : tagsParameter(tags),
    endpoint ?? null,
  ];
}

/** What fits, newest first, with one more than the limit; and below which id it is not known. */
function findKeys(db: SqliteDatabase, search: TaskSearchQuery) {
  const { deploymentIds, before = END, from = "", retryOf = null, limit, waiting } = search;
  const source = SOURCE[sourceOf(search)];
  const scanned = scannedRows(search);
  const statuses = search.statuses && JSON.stringify(search.statuses.flatMap(storedStatuses));
  let floor: string | undefined;
  const keys: TaskKey[] = [];
  for (const deploymentId of deploymentIds) {
    const last = db.get(
      `SELECT task_id FROM ${source} ORDER BY task_id DESC LIMIT 1 OFFSET ?5`,
      deploymentId,
      before,
      floor ?? from,
      retryOf,
      scanned - 1,
    );
    if (last !== undefined) {
      floor = String(last.task_id);
    }
    const rows = db.all(
      `SELECT task_id FROM ${source} AND ${fits(search)}
         AND (?12 IS NULL OR status IN (SELECT value FROM json_each(?12)))
         AND (?13 IS NULL OR (status < ${STATUS.running} AND (run_at_ms > ?13) = ?14))
       ORDER BY task_id DESC LIMIT ?5`,
      deploymentId,
      before,
      floor ?? from,
      retryOf,
      limit + 1,
      ...fitting(search),
      statuses ?? null,
      waiting?.nowMs ?? null,
      waiting?.scheduled === true ? 1 : 0,
    );
    keys.push(...rows.map((row) => ({ deploymentId, taskId: String(row.task_id) })));
  }
  const known = keys
    .filter(({ taskId }) => floor === undefined || taskId >= floor)
    .sort((a, b) => (a.taskId < b.taskId ? 1 : -1))
    .slice(0, limit + 1);
  return { known, floor };
}

export function searchKeys(db: SqliteDatabase, search: TaskSearchQuery): TaskKeyPage {
  if (search.errorContains !== undefined) {
    const { tasks, nextBefore } = searchTasks(db, search);
    return { keys: tasks.map(keyOf), nextBefore };
  }
  const { known, floor } = findKeys(db, search);
  return pageOfKeys(search, known, floor);
}

export function searchTasks(db: SqliteDatabase, search: TaskSearchQuery): TaskSearchPage {
  const { known, floor } = findKeys(db, search);
  const found = known.flatMap(({ deploymentId, taskId }) =>
    db.all(
      `SELECT ${TASK_COLUMNS},
         substr(coalesce(arguments, arguments_preview), 1, ${MAX_SHOWN_CHARACTERS}) AS preview
       FROM tasks WHERE deployment_id = ? AND task_id = ?`,
      deploymentId,
      taskId,
    ),
  );
  const tasks = found.map((row) => ({
    ...toTask(row),
    argumentsPreview: String(row.preview ?? ""),
  }));
  return pageOf(search, tasks, floor);
}

/** What is counted, by the smallest index that has it. Tasks that live are few, and in any order. */
const COUNTED = {
  scheduled: [
    `tasks INDEXED BY tasks_scheduled WHERE status = ${STATUS.scheduled} AND ${OF_DEPLOYMENT}`,
    "status, run_at_ms",
    "sum(run_at_ms > ?5) AS scheduled, sum(run_at_ms <= ?5) AS queued",
  ],
  ready: [
    `tasks INDEXED BY tasks_ready WHERE status = ${STATUS.ready} AND ${OF_DEPLOYMENT}`,
    "status, run_at_ms",
    "sum(run_at_ms > ?5) AS scheduled, sum(run_at_ms <= ?5) AS queued",
  ],
  running: [
    `tasks INDEXED BY tasks_leased WHERE status = ${STATUS.running} AND ${OF_DEPLOYMENT}`,
    "status",
    "count(*) AS running",
  ],
  unsuccessful: [
    `${SOURCE.unsuccessful} ORDER BY task_id DESC`,
    "status",
    `sum(status = ${STATUS.failure}) AS failure, sum(status = ${STATUS.cancelled}) AS cancelled`,
  ],
  succeeded: [
    `${SOURCE.all} ORDER BY task_id DESC`,
    "status",
    `sum(status = ${STATUS.success}) AS success`,
  ],
  tagged: [
    `${SOURCE.tagged} ORDER BY task_id DESC`,
    "status, run_at_ms",
    [
      `sum(status < ${STATUS.running} AND run_at_ms > ?5) AS scheduled`,
      `sum(status < ${STATUS.running} AND run_at_ms <= ?5) AS queued`,
      ...(["running", "success", "failure", "cancelled"] as const).map(
        (state) => `sum(status = ${STATUS[state]}) AS ${state}`,
      ),
    ].join(", "),
  ],
} as const;

export function countStates(db: SqliteDatabase, asked: TaskCountQuery): StateCounts {
  const { deploymentIds, before = END, from = "", nowMs } = asked;
  const most = countedRows(asked);
  const counted = (name: keyof typeof COUNTED) =>
    deploymentIds.map((deploymentId) => {
      const [source, columns, sums] = COUNTED[name];
      return db.get(
        `WITH scanned AS MATERIALIZED (
           SELECT ${columns}, ${fits(asked)} AS fits FROM ${source} LIMIT ?4)
         SELECT (SELECT count(*) FROM scanned) AS scanned, ${sums} FROM scanned
         WHERE fits`,
        deploymentId,
        before,
        from,
        most,
        nowMs,
        ...fitting(asked),
      ) as Record<string, unknown>;
    });
  if (asked.tags !== undefined) {
    const tagged = counted("tagged");
    return countsOf({ live: tagged, unsuccessful: tagged, succeeded: tagged }, most);
  }
  return countsOf(
    {
      live: [...counted("scheduled"), ...counted("ready"), ...counted("running")],
      unsuccessful: counted("unsuccessful"),
      succeeded: counted("succeeded"),
    },
    most,
  );
}
