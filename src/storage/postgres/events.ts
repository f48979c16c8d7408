/** Appends progress and log lines to the event logs of running attempts, many at once. */
import type { Attempt, NewEvent } from "../storage.ts";
import { nameOf } from "./rows.ts";
import { type BoundStatement, prepared, type Session } from "./session.ts";

/** An event and whose it is. */
export type AttemptEvent = NewEvent & { readonly attempt: Attempt };

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

/** `$1`: lines that the logs of running attempts are not to have any more. */
const DELETE_DISPLACED = prepared(
  "delete_displaced",
  `DELETE FROM task_events
   USING json_to_recordset($1) AS given
     (deployment_id text, task_id text, lease_id text, attempt integer, first integer, last integer)
   JOIN live_tasks USING (deployment_id, task_id)
   WHERE live_tasks.lease_id = given.lease_id AND live_tasks.attempt = given.attempt
     AND task_events.deployment_id = given.deployment_id
     AND task_events.task_id = given.task_id AND task_events.attempt = given.attempt
     AND (body::json ->> 'line')::integer BETWEEN given.first AND given.last`,
);

interface Group {
  readonly attempt: Attempt;
  readonly events: AttemptEvent[];
}

/** Appends events; returns their sequence numbers, undefined for those of stale attempts. */
export async function recordEvents(
  session: Session,
  events: readonly AttemptEvent[],
): Promise<(number | undefined)[]> {
  const groups = group(events);
  const asked = recording(groups);
  const [first] = asked;
  const rows =
    first && asked.length === 1
      ? await session.query(...first)
      : ((await session.together(...asked))[0] ?? []);
  const sequences = new Map<AttemptEvent, number>();
  for (const { n, before } of rows) {
    for (const [index, event] of (groups[Number(n)]?.events ?? []).entries()) {
      sequences.set(event, Number(before) + index + 1);
    }
  }
  return events.map((event) => sequences.get(event));
}

/** The statements that append events which somebody else's statements follow; none for no events. */
export function recordingOf(events: readonly AttemptEvent[]): BoundStatement[] {
  return events.length === 0 ? [] : recording(group(events));
}

/** The statement that appends, and the one that deletes what is displaced if anything is. */
function recording(groups: readonly Group[]): BoundStatement[] {
  const bodies = groups.flatMap(({ events }, n) =>
    events.map(({ timeMs, body }, index) => ({
      n,
      number: index + 1,
      time_ms: timeMs,
      body: JSON.stringify(body),
    })),
  );
  const displaced = groups.flatMap(({ attempt, events }) =>
    events.flatMap(({ displaces }) => (displaces ? [{ ...toFence(attempt), ...displaces }] : [])),
  );
  return [
    [RECORD, JSON.stringify(groups.map(toRow)), JSON.stringify(bodies)],
    ...(displaced.length > 0 ? [[DELETE_DISPLACED, JSON.stringify(displaced)] as const] : []),
  ];
}

/**
 * Groups events by attempt. A task that two attempts claim to run has two
 * groups; one of them is stale.
 */
function group(events: readonly AttemptEvent[]): Group[] {
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
    ...toFence(attempt),
    events: events.length,
    progress:
      progress?.kind === "progress"
        ? JSON.stringify({ fraction: progress.fraction, message: progress.message })
        : null,
  };
}

function toFence({ deploymentId, taskId, leaseId, attempt }: Attempt) {
  return { deployment_id: deploymentId, task_id: taskId, lease_id: leaseId, attempt };
}
