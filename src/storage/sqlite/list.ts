/** Lists tasks in pages, with a bounded scan per page. */
import type { TaskStatus } from "../../tasks/task.ts";
import type { TaskListing } from "../listing.ts";
import type { Storage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { hasTags, TAGGED, TASK_COLUMNS, tagsParameter, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";

/**
 * Rows looked at for one page: a filter that fits few tasks must not read them all. They are
 * looked at inside SQLite, where it takes a few milliseconds.
 */
const MAX_SCANNED_ROWS = 5_000;

/** Sorts after every id. */
const END = "~";

export function listTasks(
  db: SqliteDatabase,
  listing: TaskListing,
): Awaited<ReturnType<Storage["listTasks"]>> {
  const { deploymentId, limit, before = END, createdFromMs = 0, tags } = listing;
  const source = tags === undefined ? "tasks WHERE" : TAGGED;
  const end = hasFilter(listing) ? scanEnd(db, source, listing) : undefined;
  const [lowest, highest] = statusRange(listing.status);
  const rows = db.all(
    `SELECT ${TASK_COLUMNS} FROM ${source} deployment_id = ?1 AND task_id < ?2 AND task_id >= ?3
       AND (?4 IS NULL OR endpoint = ?4) AND status BETWEEN ?5 AND ?6
       AND created_at_ms >= ?7 AND created_at_ms < ?8 AND (?10 IS NULL OR key = ?10)
       ${tags === undefined ? "" : `AND ${hasTags("?11")}`}
     ORDER BY task_id DESC LIMIT ?9`,
    deploymentId,
    before,
    end?.taskId ?? "",
    listing.endpoint ?? null,
    lowest,
    highest,
    createdFromMs,
    listing.createdBeforeMs ?? Number.MAX_SAFE_INTEGER,
    limit + 1,
    listing.key ?? null,
    ...(tags === undefined ? [] : [tagsParameter(tags)]),
  );
  const tasks = rows.slice(0, limit).map(toTask);
  if (rows.length > limit) {
    return { tasks, nextBefore: tasks.at(-1)?.taskId };
  }
  // Ids are time-ordered: all rows after one that is too old are too old as
  // well.
  const more = end !== undefined && end.createdAtMs >= createdFromMs;
  return { tasks, nextBefore: more ? end.taskId : undefined };
}

/** The last row that this page scans; undefined when the page reaches the end of the table. */
function scanEnd(
  db: SqliteDatabase,
  source: string,
  { deploymentId, before = END }: TaskListing,
): { taskId: string; createdAtMs: number } | undefined {
  const row = db.get(
    `SELECT task_id, created_at_ms FROM ${source} deployment_id = ? AND task_id < ?
     ORDER BY task_id DESC LIMIT 1 OFFSET ?`,
    deploymentId,
    before,
    MAX_SCANNED_ROWS - 1,
  );
  return row && { taskId: String(row.task_id), createdAtMs: Number(row.created_at_ms) };
}

function hasFilter(listing: TaskListing): boolean {
  const { endpoint, status, key, createdFromMs, createdBeforeMs, tags } = listing;
  return [endpoint, status, key, createdFromMs, createdBeforeMs, tags].some(
    (each) => each !== undefined,
  );
}

function statusRange(status: TaskStatus | undefined): [lowest: number, highest: number] {
  if (status === undefined) {
    return [STATUS.scheduled, STATUS.cancelled];
  }
  return status === "queued" ? [STATUS.scheduled, STATUS.ready] : [STATUS[status], STATUS[status]];
}
