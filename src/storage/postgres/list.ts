/** Lists tasks in pages, with a bounded scan per page. */
import type { TaskListing } from "../listing.ts";
import type { Storage } from "../storage.ts";
import { storedStatuses, tagTexts } from "../stored.ts";
import { hasTags, sought, TAGGED, TASK_COLUMNS, toTask } from "./rows.ts";
import { prepared, type Session } from "./session.ts";

/** Rows scanned for one page, so that a filter with few matches does not read them all. */
const MAX_SCANNED_ROWS = 5_000;

const list = (name: string, source: string, more = "") =>
  prepared(
    name,
    `WITH scanned AS MATERIALIZED (
     SELECT ${TASK_COLUMNS} FROM ${source} deployment_id = $1 AND task_id < $2
     ORDER BY task_id DESC LIMIT $3
   ), fitting AS (
     SELECT * FROM scanned
     WHERE ($4::text IS NULL OR endpoint = $4) AND ($5::integer[] IS NULL OR status = ANY ($5))
       AND ($6::bigint IS NULL OR created_at_ms >= $6)
       AND ($7::bigint IS NULL OR created_at_ms < $7) AND ($9::text IS NULL OR key = $9)${more}
     ORDER BY task_id DESC LIMIT $8
   )
   SELECT bounds.*, fitting.* FROM (
     SELECT count(*) AS scanned, min(task_id) AS last, min(created_at_ms) AS oldest_ms FROM scanned
   ) AS bounds LEFT JOIN fitting ON true
   ORDER BY task_id DESC`,
  );

const LIST = list("list_tasks", "tasks WHERE");
const LIST_TAGGED = list("list_tagged_tasks", TAGGED, ` AND ${hasTags("$10")}`);

export async function listTasks(
  session: Session,
  listing: TaskListing,
): Promise<Awaited<ReturnType<Storage["listTasks"]>>> {
  const { deploymentId, before, endpoint, status, key, createdFromMs, createdBeforeMs, limit } =
    listing;
  const values = [
    deploymentId,
    before ?? "~",
    hasFilter(listing) ? Math.max(MAX_SCANNED_ROWS, limit + 1) : limit + 1,
    endpoint ?? null,
    status === undefined ? null : storedStatuses(status),
    createdFromMs ?? null,
    createdBeforeMs ?? null,
    limit + 1,
    key ?? null,
    ...(listing.tags === undefined ? [] : [tagTexts(listing.tags)]),
  ];
  const statement = listing.tags === undefined ? LIST : LIST_TAGGED;
  const rows = await session.query(statement, ...sought(values));
  const found = rows.filter((row) => row.task_id !== null).map(toTask);
  const tasks = found.slice(0, limit);
  if (found.length > limit) {
    return { tasks, nextBefore: tasks.at(-1)?.taskId };
  }
  const [bounds] = rows;
  // Ids are time-ordered: all rows after one that is too old are too old as
  // well.
  const over = createdFromMs !== undefined && Number(bounds?.oldest_ms) < createdFromMs;
  const more = hasFilter(listing) && Number(bounds?.scanned) >= MAX_SCANNED_ROWS && !over;
  return { tasks, nextBefore: more ? String(bounds?.last) : undefined };
}

function hasFilter(listing: TaskListing): boolean {
  const { endpoint, status, key, createdFromMs, createdBeforeMs, tags } = listing;
  return [endpoint, status, key, createdFromMs, createdBeforeMs, tags].some(
    (each) => each !== undefined,
  );
}
