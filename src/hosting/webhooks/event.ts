/** The body of a message: what a webhook receives at the end of a task. */
import type { TakenDelivery } from "../../storage/hosting/webhooks.ts";
import type { Storage } from "../../storage/storage.ts";
import { isBare, readTags } from "../../storage/stored.ts";
import type { TaskFailure } from "../../tasks/task.ts";

/** Result that a message has in it, in bytes; of a larger one it has the address alone. */
const MAX_TOLD_RESULT_BYTES = 20_000;

interface EventOptions {
  readonly storage: Pick<Storage, "getResult">;
  /** Where people reach the platform, without a slash at the end. */
  readonly platformUrl: string;
}

/** Builds the body; it is the same each time, as the task never changes again. */
export async function eventBody(delivery: TakenDelivery, options: EventOptions): Promise<string> {
  const { end, taskId, endpoint, deployment, organization, task, createdAtMs } = delivery;
  const failure =
    task?.failure === undefined ? undefined : (JSON.parse(task.failure) as TaskFailure);
  const result = await resultText(delivery, options.storage);
  const query = new URLSearchParams({ organization, deployment });
  const data = {
    ...{ organization, deployment, endpoint, task_id: taskId, status: end },
    ...(task !== undefined && {
      created_at: timeText(task.createdAtMs),
      ...(task.startedAtMs !== undefined && { started_at: timeText(task.startedAtMs) }),
      finished_at: timeText(task.finishedAtMs),
      attempt: task.attempt,
      ...(task.retryOf !== undefined && { retry_of: task.retryOf }),
      ...(task.tags !== undefined && { tags: readTags(task.tags) }),
    }),
    ...(failure && { failure: { reason: failure.reason, message: failure.message } }),
    result_url: `${options.platformUrl}/api/v1/tasks/${taskId}/result?${query}`,
  };
  const text = JSON.stringify({
    type: `task.${end}`,
    timestamp: timeText(task?.finishedAtMs ?? createdAtMs),
    data,
  });
  // The result is JSON already: numbers of any length stay what they are.
  return result === undefined ? text : `${text.slice(0, -2)},"result":${result}}}`;
}

/** The body of a message that tries a webhook. */
export function testBody(
  deployment: { readonly organization: string; readonly deployment: string },
  nowMs: number,
): string {
  return JSON.stringify({ type: "webhook.test", timestamp: timeText(nowMs), data: deployment });
}

/** JSON text of a small result; undefined for a large one, one with files, and none. */
async function resultText(
  { deploymentId, taskId, task }: TakenDelivery,
  storage: EventOptions["storage"],
): Promise<string | undefined> {
  if (task?.result !== undefined) {
    return task.result;
  }
  if (task?.resultBytes === undefined || task.resultBytes > MAX_TOLD_RESULT_BYTES) {
    return undefined;
  }
  const payload = await storage.getResult({ deploymentId, taskId });
  return payload !== undefined && isBare(payload) ? payload.json : undefined;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
