/**
 * UpdateTask: changes when a task starts that waits, how long it is kept, and its tags, with its line in
 * the audit log where there is one.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { type TaskService, UpdateTaskRequestSchema } from "../../../gen/tessera/v1/task_pb.js";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import { changedFields } from "../mask.ts";
import { invalidField } from "../violations.ts";
import { recordOfTask, type TaskAudit } from "./audit.ts";
import { toTaskMessage } from "./messages.ts";
import { scheduleOf, tagsOf } from "./submit.ts";
import { question } from "./task.ts";

const CHANGEABLE = ["priority", "run_at", "start_by", "retention", "tags"] as const;

/** The method that changes a task. `audit`: default, where there are no accounts, nothing is recorded. */
export function updateHandlers(
  audit?: TaskAudit,
): Pick<ServiceImpl<typeof TaskService>, "updateTask"> {
  return {
    async updateTask(req, ctx) {
      const { queue, tasks, name, maxRetentionMs } = deploymentOf(ctx);
      const fields = changedFields(
        UpdateTaskRequestSchema,
        { message: req, mask: req.updateMask },
        CHANGEABLE,
      );
      const has = (field: (typeof CHANGEABLE)[number]): boolean => fields.has(field);
      if (has("retention") && req.retention === undefined) {
        throw invalidField("retention", "cannot be taken away: set how long the task is kept");
      }
      const nowMs = Date.now();
      const asked = scheduleOf(
        {
          ...(has("priority") && { priority: req.priority ?? 0 }),
          ...(has("run_at") && req.runAt && { runAt: req.runAt }),
          ...(has("start_by") && req.startBy && { startBy: req.startBy }),
          ...(has("retention") && req.retention && { retention: req.retention }),
        },
        { nowMs, maxRetentionMs },
      );
      const asking = question(req, ctx);
      const before = await tasks.find(asking);
      const runAtMs = has("run_at") ? (asked.runAtMs ?? nowMs) : undefined;
      const startByMs = has("start_by") ? (asked.startByMs ?? null) : undefined;
      const latestMs = startByMs === undefined ? before.startByMs : startByMs;
      const hasTime = latestMs == null || latestMs > Math.max(runAtMs ?? before.runAtMs, nowMs);
      // Of one that does not wait, the times before its start are over: it is refused for that.
      if (!hasTime && before.status === "queued" && (has("run_at") || has("start_by"))) {
        throw invalidField(
          has("start_by") ? "start_by" : "run_at",
          "would leave no time between run_at and start_by: the task could never be started",
        );
      }
      const { priority, retentionMs } = asked;
      const tags = has("tags") ? (tagsOf(req.tags) ?? []) : undefined;
      const change = { priority, runAtMs, startByMs, retentionMs, tags };
      const task = await queue.amending.update(asking, change);
      const changed = [...fields].sort().join(" ");
      await recordOfTask(audit, ctx, {
        action: "task.update",
        details: { task: req.taskId, changed },
      });
      return toTaskMessage(task, name, await tasks.place(task));
    },
  };
}
