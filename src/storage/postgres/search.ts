/** Searches tasks of several deployments, and counts them, with bounded scans (`task-search.ts`). */
import type { StateCounts, TaskCountQuery, TaskSearchPage, TaskSearchQuery } from "../listing.ts";
import type { TaskKeyPage } from "../storage.ts";
import { storedStatuses, tagTexts } from "../stored.ts";
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
import { columnsOf, hasTags, sought, TAGGED, TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

// Statements of this file have the same numbers for the same values.

/**
 * Whether a row has the endpoint of $5, the error of $6, the text of $7 (in JSON $8), and the key of
 * $9. `failure` is the column of failures.
 */
const fits = (failure: string) => `($5::text IS NULL OR endpoint = $5)
  AND ($9::text IS NULL OR key = $9)
  AND ($6::text IS NULL OR strpos(lower(${failure} COLLATE "C"), $6) > 0)
  AND ($7::text IS NULL OR strpos(task_id, $7) > 0 OR strpos(lower(endpoint), $7) > 0
    OR strpos(lower(coalesce(arguments, arguments_preview) COLLATE "C"), $7) > 0
    OR strpos(lower(coalesce(arguments, arguments_preview) COLLATE "C"), $8) > 0
    OR strpos(lower(substr(${failure}, strpos(${failure}, '"message":') + 10) COLLATE "C"), $8) > 0)`;

function fitting({
  endpoint,
  errorContains,
  text,
  key,
}: Pick<TaskSearchQuery, "text" | "errorContains" | "endpoint" | "key">) {
  const stored = storedText(text);
  return [
    endpoint ?? null,
    storedErrorText(errorContains),
    stored?.plain ?? null,
    stored?.json ?? null,
    key ?? null,
  ];
}

/**
 * The statements that search one source, for tasks and for their keys; `failure` is the column of its
 * failures. Each deployment is scanned until enough of it fit. The last row of a scan that has come
 * to its bound is there as well, whether it fits or not: above it alone the deployment is known.
 */
function search(name: string, source: string, failure: string, more = "") {
  const found = `WITH scanned AS MATERIALIZED (
       SELECT wanted.id AS deployment_id, one.*
       FROM unnest($1::text[]) AS wanted(id) CROSS JOIN LATERAL (
         SELECT * FROM (
           SELECT task_id, fits, row_number() OVER (ORDER BY task_id DESC) AS number FROM (
             SELECT task_id, coalesce(${fits(failure)}, false)
               AND ($10::integer[] IS NULL OR status = ANY ($10))
               AND ($11::bigint IS NULL OR status < ${STATUS.running} AND (run_at_ms > $11) = $12::boolean)
               ${more} AS fits
             FROM ${source} deployment_id = wanted.id AND task_id < $2 AND task_id >= $3
             ORDER BY task_id DESC LIMIT $4
           ) AS rows
         ) AS numbered
         WHERE fits OR number = $4 ORDER BY task_id DESC LIMIT $13
       ) AS one
     ), bounds AS (
       SELECT max(task_id) FILTER (WHERE number = $4) AS floor FROM scanned
     ), keys AS MATERIALIZED (
       SELECT deployment_id, task_id FROM scanned, bounds
       WHERE fits AND (floor IS NULL OR task_id >= floor)
       ORDER BY task_id DESC LIMIT $13
     )`;
  return {
    keys: prepared(
      `${name}_keys`,
      `${found}
     SELECT floor, deployment_id, task_id FROM bounds LEFT JOIN keys ON true ORDER BY task_id DESC`,
    ),
    tasks: prepared(
      name,
      `${found}
     SELECT bounds.floor, found.* FROM bounds LEFT JOIN (
       SELECT ${columnsOf("tasks", TASK_COLUMNS)},
         substr(coalesce(arguments, arguments_preview), 1, ${MAX_SHOWN_CHARACTERS}) AS preview
       FROM keys JOIN tasks ON tasks.deployment_id = keys.deployment_id
         AND tasks.task_id = keys.task_id
     ) AS found ON true
     ORDER BY found.task_id DESC`,
    ),
  };
}

const SEARCH = {
  all: search("search_tasks", "tasks WHERE", "failure"),
  live: search("search_live_tasks", "live_tasks WHERE", "NULL::text"),
  unsuccessful: search(
    "search_unsuccessful_tasks",
    "finished_tasks WHERE status >= 4 AND",
    "failure",
  ),
  tagged: search("search_tagged_tasks", TAGGED, "failure", `AND ${hasTags("$14")}`),
  retries: search(
    "search_retries",
    "tasks WHERE retry_of = $15 AND",
    "failure",
    `AND ($14::text[] IS NULL OR ${hasTags("$14")})`,
  ),
};

/** Runs a search; answers the rows that it has found, and the floor of `pageOfKeys`. */
async function find(session: Session, asked: TaskSearchQuery, what: "tasks" | "keys") {
  const { waiting, retryOf, tags } = asked;
  const wanted = tags === undefined ? null : tagTexts(tags);
  const values = [
    asked.deploymentIds,
    asked.before ?? "~",
    asked.from ?? "",
    scannedRows(asked),
    ...fitting(asked),
    asked.statuses?.flatMap(storedStatuses) ?? null,
    waiting?.nowMs ?? null,
    waiting?.scheduled ?? null,
    asked.limit + 1,
    ...(retryOf === undefined ? (wanted === null ? [] : [wanted]) : [wanted, retryOf]),
  ];
  const rows = await session.query(SEARCH[sourceOf(asked)][what], ...sought(values));
  const floor = rows[0]?.floor;
  return {
    rows: rows.filter((row) => row.task_id !== null),
    floor: typeof floor === "string" ? floor : undefined,
  };
}

export async function searchTasks(
  session: Session,
  asked: TaskSearchQuery,
): Promise<TaskSearchPage> {
  const { rows, floor } = await find(session, asked, "tasks");
  const found = rows.map((row) => ({
    ...toTask(row),
    argumentsPreview: String(row.preview ?? ""),
  }));
  return pageOf(asked, found, floor);
}

export async function searchKeys(session: Session, asked: TaskSearchQuery): Promise<TaskKeyPage> {
  if (asked.errorContains !== undefined) {
    const { tasks, nextBefore } = await searchTasks(session, asked);
    return { keys: tasks.map(keyOf), nextBefore };
  }
  const { rows, floor } = await find(session, asked, "keys");
  const keys = rows.map((row) => ({
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
  }));
  return pageOfKeys(asked, keys, floor);
}

/** Counts what fits of the newest rows of each deployment in one source, and all that were read. */
const counted = (source: string, failure: string, sums: string, more = "") => `(
  SELECT wanted.id, count(*) AS scanned, ${sums}
  FROM unnest($1::text[]) AS wanted(id) CROSS JOIN LATERAL (
    SELECT status, ${source.startsWith("finished") ? "0" : "run_at_ms"} AS run_at_ms,
      coalesce(${fits(failure)}, false) ${more} AS fits
    FROM ${source} deployment_id = wanted.id AND task_id < $2 AND task_id >= $3
    ORDER BY task_id DESC LIMIT $4
  ) AS one GROUP BY wanted.id)`;

const sum = (name: string, condition: string) =>
  `count(*) FILTER (WHERE fits AND ${condition}) AS ${name}`;

const SUMS = {
  live: [
    sum("scheduled", `status < ${STATUS.running} AND run_at_ms > $10`),
    sum("queued", `status < ${STATUS.running} AND run_at_ms <= $10`),
    sum("running", `status = ${STATUS.running}`),
  ],
  unsuccessful: [
    sum("failure", `status = ${STATUS.failure}`),
    sum("cancelled", `status = ${STATUS.cancelled}`),
  ],
  succeeded: [sum("success", `status = ${STATUS.success}`)],
};

const COUNT = prepared(
  "count_states",
  `SELECT 'live' AS source, scanned, scheduled, queued, running, NULL::bigint AS success,
     NULL::bigint AS failure, NULL::bigint AS cancelled
   FROM ${counted("live_tasks WHERE", "NULL::text", SUMS.live.join(", "))} AS live
   UNION ALL
   SELECT 'unsuccessful', scanned, NULL, NULL, NULL, NULL, failure, cancelled
   FROM ${counted(
     "finished_tasks WHERE status >= 4 AND",
     "failure",
     SUMS.unsuccessful.join(", "),
   )} AS unsuccessful
   UNION ALL
   SELECT 'succeeded', scanned, NULL, NULL, NULL, success, NULL, NULL
   FROM ${counted("finished_tasks WHERE", "failure", SUMS.succeeded.join(", "))} AS succeeded`,
);

const COUNT_TAGGED = prepared(
  "count_tagged_states",
  `SELECT * FROM ${counted(
    TAGGED,
    "failure",
    [...SUMS.live, ...SUMS.unsuccessful, ...SUMS.succeeded].join(", "),
    `AND ${hasTags("$11")}`,
  )} AS tagged`,
);

export async function countStates(session: Session, asked: TaskCountQuery): Promise<StateCounts> {
  const most = countedRows(asked);
  const { tags } = asked;
  const values = [
    asked.deploymentIds,
    asked.before ?? "~",
    asked.from ?? "",
    most,
    ...fitting(asked),
    asked.nowMs,
    ...(tags === undefined ? [] : [tagTexts(tags)]),
  ];
  const statement = tags === undefined ? COUNT : COUNT_TAGGED;
  const rows = await session.query(statement, ...sought(values));
  if (tags !== undefined) {
    return countsOf({ live: rows, unsuccessful: rows, succeeded: rows }, most);
  }
  const of = (source: string) => rows.filter((row) => row.source === source);
  return countsOf(
    { live: of("live"), unsuccessful: of("unsuccessful"), succeeded: of("succeeded") },
    most,
  );
}
