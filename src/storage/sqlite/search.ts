/** Searches tasks of several deployments, with a bounded scan per page (`task-search.ts`). */
import type { TaskStatus } from "../../tasks/task.ts";
import type { TaskSearchPage, TaskSearchQuery } from "../listing.ts";
import type { TaskKey } from "../storage.ts";
import { pageOf, scannedRows, sourceOf, storedText } from "../task-search.ts";
import type { SqliteDatabase } from "./database.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** Sorts after every id. */
const END = "~";

const SOURCE = {
  all: "tasks WHERE deployment_id = ?1",
  live: "tasks WHERE deployment_id = ?1",
  unsuccessful: "tasks INDEXED BY tasks_unsuccessful WHERE status >= 4 AND deployment_id = ?1",
};

export function searchTasks(db: SqliteDatabase, search: TaskSearchQuery): TaskSearchPage {
  const { deploymentIds, before = END, from = "", limit } = search;
  const source = SOURCE[sourceOf(search)];
  const scanned = scannedRows(search);
  const statuses = search.statuses && JSON.stringify(search.statuses.flatMap(storedStatuses));
  let floor: string | undefined;
  const keys: TaskKey[] = [];
  for (const deploymentId of deploymentIds) {
    const last = db.get(
      `SELECT task_id FROM ${source} AND task_id < ?2 AND task_id >= ?3
       ORDER BY task_id DESC LIMIT 1 OFFSET ?4`,
      deploymentId,
      before,
      floor ?? from,
      scanned - 1,
    );
    if (last !== undefined) {
      floor = String(last.task_id);
    }
    const rows = db.all(
      `SELECT task_id FROM ${source} AND task_id < ?2 AND task_id >= ?3
         AND (?4 IS NULL OR endpoint = ?4)
         AND (?5 IS NULL OR status IN (SELECT value FROM json_each(?5)))
         AND (?6 IS NULL OR instr(lower(failure), ?6) > 0)
       ORDER BY task_id DESC LIMIT ?7`,
      deploymentId,
      before,
      floor ?? from,
      search.endpoint ?? null,
      statuses ?? null,
      storedText(search),
      limit + 1,
    );
    keys.push(...rows.map((row) => ({ deploymentId, taskId: String(row.task_id) })));
  }
  const known = keys
    .filter(({ taskId }) => floor === undefined || taskId >= floor)
    .sort((a, b) => (a.taskId < b.taskId ? 1 : -1))
    .slice(0, limit + 1);
  const found = known.flatMap(({ deploymentId, taskId }) =>
    db.all(
      `SELECT ${TASK_COLUMNS} FROM tasks WHERE deployment_id = ? AND task_id = ?`,
      deploymentId,
      taskId,
    ),
  );
  return pageOf(search, found.map(toTask), floor);
}

function storedStatuses(status: TaskStatus): number[] {
  return status === "queued" ? [STATUS.scheduled, STATUS.ready] : [STATUS[status]];
}
