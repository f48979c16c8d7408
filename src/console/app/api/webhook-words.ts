/** The events that webhooks send, in words. */
import type { WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";

const ENDS: Readonly<Record<string, string>> = {
  WEBHOOK_EVENT_TASK_SUCCESS: "succeeded",
  WEBHOOK_EVENT_TASK_FAILURE: "failed",
  WEBHOOK_EVENT_TASK_CANCELLED: "cancelled",
};

/** An event in a word: how the task ended. */
export const endOf = (event = ""): string => ENDS[event] ?? "ended";

/** The events that a webhook sends, by their tasks: `failed tasks of transcribe`, `all tasks`. */
export function eventsText({ events = [], endpoint, namedOnly = false }: WebhookJson): string {
  const isAll = events.length === Object.keys(ENDS).length;
  const ends = isAll ? "" : events.map(endOf).join(" and ");
  const of = [endpoint && `of ${endpoint}`, namedOnly && "that name it"].filter(Boolean);
  const tasks = ends === "" ? (of.length === 0 ? "all tasks" : "tasks") : `${ends} tasks`;
  return [tasks, ...of].join(" ");
}
