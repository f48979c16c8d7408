/** Appends progress and log lines to the event logs of running attempts, many at once. */
import type { Attempt, Storage } from "../storage.ts";
import { nameOf } from "./rows.ts";
import { prepared, type Session } from "./session.ts";

type Recorded = Parameters<Storage["recordEvents"]>[0]["events"][number];

/** `$1`: attempts with how many events each; `$2`: the events, numbered within their attempt. */
const RECORD = prepared(
  "record_events",
  `WITH given AS (
     SELECT * FROM json_to_recordset($1) AS given (n integer, deployment_id text, task_id text,
       lease_id text, attempt integer, events integer, progress text)
   ), counted AS (
     UPDATE live_tasks SET last_sequence = last_sequence + given.events,
       progress = coalesce(given.progress, live_tasks.progress)
     FROM given
     WHERE live_tasks.deployment_id = given.deployment_id AND live_tasks.task_id = given.task_id
       AND live_tasks.lease_id = given.lease_id AND live_tasks.attempt = given.attempt
     RETURNING given.n, live_tasks.deployment_id, live_tasks.task_id, live_tasks.attempt,
       last_sequence - given.events AS before
   ), recorded AS (
     INSERT INTO task_events (deployment_id, task_id, sequence, time_ms, attempt, body)
     SELECT deployment_id, task_id, before + number, time_ms, attempt, body
     FROM json_to_recordset($2) AS events (n integer, number integer, time_ms bigint, body text)
     JOIN counted USING (n)
   )
   SELECT n, before FROM counted`,
);

/** `$1`: lines that the logs of attempts are not to have any more. */
const DELETE_DISPLACED = prepared(
  "delete_displaced",
  `DELETE FROM task_events
   USING json_to_recordset($1) AS given
     (deployment_id text, task_id text, attempt integer, first integer, last integer)
   WHERE task_events.deployment_id = given.deployment_id
     AND task_events.task_id = given.task_id AND task_events.attempt = given.attempt
     AND (body::json ->> 'line')::integer BETWEEN given.first AND given.last`,
);

interface Group {
  readonly attempt: Attempt;
  readonly events: Recorded[];
}

/** Appends events; returns their sequence numbers, undefined for those of stale attempts. */
export async function recordEvents(
  session: Session,
  events: readonly Recorded[],
): Promise<(number | undefined)[]> {
  const groups = group(events);
  const rows = await session.query(
    RECORD,
    JSON.stringify(groups.map(toRow)),
    JSON.stringify(
      groups.flatMap(({ events }, n) =>
        events.map(({ timeMs, body }, index) => ({
          n,
          number: index + 1,
          time_ms: timeMs,
          body: JSON.stringify(body),
        })),
      ),
    ),
  );
  const sequences = new Map<Recorded, number>();
  for (const { n, before } of rows) {
    for (const [index, event] of (groups[Number(n)]?.events ?? []).entries()) {
      sequences.set(event, Number(before) + index + 1);
    }
  }
  await removeDisplaced(
    session,
    events.filter((event) => sequences.has(event)),
  );
  return events.map((event) => sequences.get(event));
}

async function removeDisplaced(session: Session, recorded: readonly Recorded[]): Promise<void> {
  const displaced = recorded.flatMap(({ attempt, displaces }) => {
    const { deploymentId, taskId } = attempt;
    return displaces === undefined
      ? []
      : [{ deployment_id: deploymentId, task_id: taskId, attempt: attempt.attempt, ...displaces }];
  });
  if (displaced.length > 0) {
    await session.query(DELETE_DISPLACED, JSON.stringify(displaced));
  }
}

/**
 * Groups events by attempt. A task that two attempts claim to run has two
 * groups; one of them is stale.
 */
function group(events: readonly Recorded[]): Group[] {
  const groups = new Map<string, Group>();
  for (const event of events) {
    const { attempt } = event;
    const name = `${nameOf(attempt)}/${attempt.leaseId}/${attempt.attempt}`;
    const found = groups.get(name) ?? { attempt, events: [] };
    found.events.push(event);
    groups.set(name, found);
  }
  return [...groups.values()];
}

function toRow({ attempt, events }: Group, n: number) {
  const progress = events.findLast(({ body }) => body.kind === "progress")?.body;
  return {
    n,
    deployment_id: attempt.deploymentId,
    task_id: attempt.taskId,
    lease_id: attempt.leaseId,
    attempt: attempt.attempt,
    events: events.length,
    progress:
      progress?.kind === "progress"
        ? JSON.stringify({ fraction: progress.fraction, message: progress.message })
        : null,
  };
}
