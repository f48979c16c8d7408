/** The read step of a submit: looks up used idempotency keys and the lengths of queues. */

import type { Task } from "../../tasks/task.ts";
import type { NewTask, TaskKey } from "../storage.ts";
import { keyHeldBy, statusOf } from "../stored.ts";
import { nameOf } from "./rows.ts";
import { prepared, type Session } from "./session.ts";

/** A task to store, with its index in the call. */
export interface Candidate {
  readonly index: number;
  readonly task: NewTask;
  /** The task that is to give its idempotency key away, because it ended badly or expired. */
  readonly replaces?: string;
}

/** The candidates, classified by the state of the database. */
interface Seen {
  /** They can be stored. */
  readonly free: readonly Candidate[];
  /** Their queue is full. */
  readonly full: readonly (Candidate & { readonly queued: number })[];
  /** Their idempotency key was used earlier, by the task `earlier`. */
  readonly used: readonly (Candidate & {
    readonly earlier: TaskKey;
    readonly digest: string;
  })[];
  /** They share an id or a key with an earlier candidate, which goes first. */
  readonly later: readonly Candidate[];
}

const LOOK = prepared(
  "look",
  `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($1) AS given (deployment_id text, endpoint text)
   ), counts AS (
     SELECT deployment_id, endpoint, queued FROM given
     JOIN queue_counts USING (deployment_id, endpoint)
     UNION ALL
     SELECT deployment_id, endpoint, queued FROM given
     JOIN queue_count_deltas USING (deployment_id, endpoint)
   )
   SELECT deployment_id, endpoint, NULL AS key, NULL AS digest, NULL AS task_id,
     sum(queued)::bigint AS queued, NULL::smallint AS ended, NULL::bigint AS expires_at_ms
   FROM counts GROUP BY deployment_id, endpoint
   UNION ALL
   SELECT keys.deployment_id, keys.endpoint, keys.key, digest, keys.task_id, NULL,
     ended.status, ended.expires_at_ms
   FROM json_to_recordset($2) AS used (deployment_id text, endpoint text, key text)
   JOIN idempotency_keys AS keys USING (deployment_id, endpoint, key)
   LEFT JOIN finished_tasks AS ended
     ON ended.deployment_id = keys.deployment_id AND ended.task_id = keys.task_id`,
);

/** A key, and how the task ended that holds it. */
interface UsedKey {
  readonly digest: string;
  readonly taskId: string;
  readonly ended: Pick<Task, "status" | "expiresAtMs"> | undefined;
}

/** Whether anything has to be looked up before a task is stored. */
export function needsLook({ leaseId, idempotency }: NewTask): boolean {
  return leaseId === undefined || idempotency !== undefined;
}

interface Known {
  readonly queued: Map<string, number>;
  readonly keys: Map<string, UsedKey>;
}

/** Classifies candidates by their queues and keys. */
export async function look(session: Session, candidates: readonly Candidate[]): Promise<Seen> {
  const { queued, keys } = await ask(session, candidates);
  const seen = { free: [], full: [], used: [], later: [] } as {
    [Kind in keyof Seen]: Seen[Kind][number][];
  };
  const taken = new Set<string>();
  for (const candidate of candidates) {
    const { task } = candidate;
    const { deploymentId, leaseId } = task;
    const key = keyName(task);
    const earlier = key === undefined ? undefined : keys.get(key);
    const waiting = queued.get(queueName(task)) ?? 0;
    if (taken.has(nameOf(task)) || (key !== undefined && taken.has(key))) {
      seen.later.push(candidate);
    } else if (earlier && !isFree(earlier, task)) {
      const { taskId, digest } = earlier;
      seen.used.push({ index: candidate.index, task, earlier: { deploymentId, taskId }, digest });
    } else if (leaseId === undefined && waiting >= task.queueLimit) {
      seen.full.push({ ...candidate, queued: waiting });
    } else {
      const { index } = candidate;
      seen.free.push(earlier ? { index, task, replaces: earlier.taskId } : candidate);
      queued.set(queueName(task), waiting + (leaseId === undefined ? 1 : 0));
    }
    taken.add(nameOf(task));
    if (key !== undefined) {
      taken.add(key);
    }
  }
  return seen;
}

async function ask(session: Session, candidates: readonly Candidate[]): Promise<Known> {
  const known: Known = { queued: new Map(), keys: new Map() };
  const queues = new Map<string, object>();
  const keys: object[] = [];
  for (const { task } of candidates) {
    const queue = { deployment_id: task.deploymentId, endpoint: task.endpoint };
    if (task.leaseId === undefined) {
      queues.set(queueName(task), queue);
    }
    if (task.idempotency) {
      keys.push({ ...queue, key: task.idempotency.key });
    }
  }
  if (queues.size === 0 && keys.length === 0) {
    return known;
  }
  const rows = await session.query(
    LOOK,
    JSON.stringify([...queues.values()]),
    JSON.stringify(keys),
  );
  for (const row of rows) {
    const queue = `${row.deployment_id}/${row.endpoint}`;
    if (row.key === null) {
      known.queued.set(queue, Number(row.queued));
    } else {
      const expiresAtMs = Number(row.expires_at_ms);
      known.keys.set(`${queue}/${row.key}`, {
        digest: String(row.digest),
        taskId: String(row.task_id),
        ended: row.ended === null ? undefined : { status: statusOf(row.ended), expiresAtMs },
      });
    }
  }
  return known;
}

function isFree({ digest, taskId, ended }: UsedKey, task: NewTask): boolean {
  return ended !== undefined && taskId !== task.taskId && keyHeldBy(ended, digest, task) === "free";
}

function queueName({ deploymentId, endpoint }: NewTask): string {
  return `${deploymentId}/${endpoint}`;
}

function keyName(task: NewTask): string | undefined {
  return task.idempotency && `${queueName(task)}/${task.idempotency.key}`;
}
