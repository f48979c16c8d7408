/** What webhooks are sent, in words. */
import type { WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";

const ENDS: Readonly<Record<string, string>> = {
  WEBHOOK_EVENT_TASK_SUCCESS: "succeeded",
  WEBHOOK_EVENT_TASK_FAILURE: "failed",
  WEBHOOK_EVENT_TASK_CANCELLED: "cancelled",
};

/** The end of a task that a webhook is sent, in a word. */
export const endOf = (event = ""): string => ENDS[event] ?? "ended";

/** The tasks whose end a webhook is sent: `failed tasks of transcribe`, `all tasks`. */
export function heardBy({ events = [], endpoint, namedOnly = false }: WebhookJson): string {
  const isAll = events.length === Object.keys(ENDS).length;
  const ends = isAll ? "" : events.map(endOf).join(" and ");
  const of = [endpoint && `of ${endpoint}`, namedOnly && "that name it"].filter(Boolean);
  const tasks = ends === "" ? (of.length === 0 ? "all tasks" : "tasks") : `${ends} tasks`;
  return [tasks, ...of].join(" ");
}
