/** What the ends of tasks write into the outbox of webhooks, in the statement of the ends. */
import { isTold, TOLD_COLUMNS } from "../sql/hosting/webhooks.ts";
import type { NewTask } from "../storage.ts";
import { prepared, type Session } from "./session.ts";
import { look } from "./submit-lookup.ts";

/**
 * SQL that adds a delivery for each webhook that hears of the end of a task in `gone`, rows of
 * `live_tasks`; `status` and `finishedAt` are SQL for how and when it ended.
 */
export function toldOf({
  status,
  finishedAt,
}: {
  readonly status: string;
  readonly finishedAt: string;
}): string {
  const task = { status, endpoint: "gone.endpoint", webhook: "gone.webhook" };
  return `INSERT INTO webhook_deliveries (${TOLD_COLUMNS})
    SELECT w.organization_id, w.deployment_id, w.webhook_id, gone.task_id || '-' || w.name, ${status},
      gone.endpoint, gone.task_id, ${finishedAt}
    FROM gone JOIN webhooks w ON w.deployment_id = gone.deployment_id WHERE ${isTold(task)}
    ON CONFLICT DO NOTHING`;
}

const FIND = prepared(
  "find_webhooks",
  `SELECT deployment_id, name FROM webhooks
   JOIN json_to_recordset($1) AS given (deployment_id text, name text) USING (deployment_id, name)`,
);

const RETRIED = prepared(
  "retried_webhooks",
  `SELECT deployment_id, task_id, webhook FROM finished_tasks
   JOIN json_to_recordset($1) AS given (deployment_id text, task_id text)
     USING (deployment_id, task_id)
   WHERE EXISTS (SELECT 1 FROM webhooks w
     WHERE w.deployment_id = finished_tasks.deployment_id AND w.name = finished_tasks.webhook)`,
);

/** The tasks, of which those that retry another name its webhook, too, where that is still there. */
export async function withRetriedWebhooks(
  session: Session,
  tasks: readonly NewTask[],
): Promise<readonly NewTask[]> {
  const asked = tasks.flatMap(({ deploymentId, retryOf, webhook }) =>
    retryOf === undefined || webhook !== undefined
      ? []
      : [{ deployment_id: deploymentId, task_id: retryOf }],
  );
  if (asked.length === 0) {
    return tasks;
  }
  const rows = await session.query(RETRIED, JSON.stringify(asked));
  const named = new Map(
    rows.map((row) => [`${row.deployment_id}/${row.task_id}`, String(row.webhook)]),
  );
  return tasks.map((task) => {
    const webhook = task.webhook ?? named.get(`${task.deploymentId}/${task.retryOf}`);
    return webhook === undefined ? task : { ...task, webhook };
  });
}

/**
 * Those of the tasks that name a webhook which their deployment does not have. What was stored under
 * their idempotency key while it had is their answer, and none of them.
 */
export async function withoutWebhook(
  session: Session,
  tasks: readonly NewTask[],
): Promise<ReadonlySet<NewTask>> {
  const naming = tasks.filter(({ webhook }) => webhook !== undefined);
  if (naming.length === 0) {
    return new Set();
  }
  const asked = naming.map(({ deploymentId, webhook }) => ({
    deployment_id: deploymentId,
    name: webhook,
  }));
  const rows = await session.query(FIND, JSON.stringify(asked));
  const there = new Set(rows.map((row) => `${row.deployment_id}/${row.name}`));
  const gone = new Set(
    naming.filter(({ deploymentId, webhook }) => !there.has(`${deploymentId}/${webhook}`)),
  );
  let pending = [...gone]
    .filter(({ idempotency }) => idempotency !== undefined)
    .map((task, index) => ({ index, task }));
  while (pending.length > 0) {
    // Of several with one key, only the first is looked at.
    const { used, later } = await look(session, pending);
    for (const { task } of used) {
      gone.delete(task);
    }
    pending = [...later];
  }
  return gone;
}
