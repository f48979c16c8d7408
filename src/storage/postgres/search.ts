/** Searches tasks of several deployments, with a bounded scan per page (`task-search.ts`). */
import type { TaskStatus } from "../../tasks/task.ts";
import type { TaskSearchPage, TaskSearchQuery } from "../listing.ts";
import { pageOf, scannedRows, sourceOf, storedText } from "../task-search.ts";
import { columnsOf, TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/** The statement for tasks of one source; `error` is the column of its failures. */
function search(name: string, source: string, error: string) {
  return prepared(
    name,
    `WITH scanned AS MATERIALIZED (
       SELECT wanted.id AS deployment_id, one.task_id, one.fits
       FROM unnest($1::text[]) AS wanted(id) CROSS JOIN LATERAL (
         SELECT task_id, ($5::text IS NULL OR endpoint = $5)
           AND ($6::integer[] IS NULL OR status = ANY ($6))
           AND ($7::text IS NULL OR strpos(lower(${error} COLLATE "C"), $7) > 0) AS fits
         FROM ${source} deployment_id = wanted.id AND task_id < $2 AND task_id >= $3
         ORDER BY task_id DESC LIMIT $4
       ) AS one
     ), bounds AS (
       SELECT max(last) AS floor FROM (
         SELECT min(task_id) AS last FROM scanned GROUP BY deployment_id HAVING count(*) >= $4
       ) AS full_scans
     ), keys AS MATERIALIZED (
       SELECT deployment_id, task_id FROM scanned, bounds
       WHERE fits AND (floor IS NULL OR task_id >= floor)
       ORDER BY task_id DESC LIMIT $8
     )
     SELECT bounds.floor, found.* FROM bounds LEFT JOIN (
       SELECT ${columnsOf("tasks", TASK_COLUMNS)}
       FROM keys JOIN tasks ON tasks.deployment_id = keys.deployment_id
         AND tasks.task_id = keys.task_id
     ) AS found ON true
     ORDER BY found.task_id DESC`,
  );
}

const SEARCH = {
  all: search("search_tasks", "tasks WHERE", "failure"),
  live: search("search_live_tasks", "live_tasks WHERE", "NULL::text"),
  unsuccessful: search(
    "search_unsuccessful_tasks",
    "finished_tasks WHERE status >= 4 AND",
    "failure",
  ),
};

export async function searchTasks(
  session: Session,
  asked: TaskSearchQuery,
): Promise<TaskSearchPage> {
  const rows = await session.query(
    SEARCH[sourceOf(asked)],
    asked.deploymentIds,
    asked.before ?? "~",
    asked.from ?? "",
    scannedRows(asked),
    asked.endpoint ?? null,
    asked.statuses?.flatMap(storedStatuses) ?? null,
    storedText(asked),
    asked.limit + 1,
  );
  const found = rows.filter((row) => row.task_id !== null).map(toTask);
  const floor = rows[0]?.floor;
  return pageOf(asked, found, typeof floor === "string" ? floor : undefined);
}

function storedStatuses(status: TaskStatus): number[] {
  return status === "queued" ? [STATUS.scheduled, STATUS.ready] : [STATUS[status]];
}
