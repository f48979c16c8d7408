/** `tessera task list`: lists tasks of a deployment, newest first. */
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  createTesseraClient,
  ListTasksResponseSchema,
  type Task,
  TaskStatus,
} from "../../client/index.ts";
import {
  CLI_CALL_TIMEOUT_MS,
  type CloudActions,
  LIST_OPTIONS,
  type ListFlags,
  option,
  readPages,
} from "../command.ts";
import { shortTime } from "../durations.ts";
import { jsonText, moment } from "../output.ts";
import { table } from "../table.ts";
import { type DeploymentTarget, type TargetFlags, targetCommand } from "../target.ts";

interface TaskListFlags extends TargetFlags, Pick<ListFlags, "limit" | "pageToken"> {
  readonly status?: string;
}

const STATUSES = ["queued", "running", "success", "failure", "cancelled"];

export function listCommand(actions: CloudActions): Command {
  return targetCommand<TaskListFlags>("list", actions, {
    description: "List tasks, the newest first.",
    arguments: [["[endpoint]", "only of this one"]],
    options: [option("--status <status>", "only in this state").choices(STATUSES), ...LIST_OPTIONS],
    examples: [
      "tessera task list summarize_batch --status failure --deployment summarizer",
      "tessera task list --url http://localhost:3000 -o json | jq -r '.tasks[].task_id'",
    ],
    run: async (target, flags, [endpoint = ""]) => {
      const { items, nextPageToken } = await readPages(flags, (page) =>
        read(target, { ...flags, endpoint }, page),
      );
      const { terminal, output } = target;
      if (output === "json") {
        const all = create(ListTasksResponseSchema, { tasks: [...items], nextPageToken });
        terminal.answer(jsonText(ListTasksResponseSchema, all));
        return;
      }
      const nowMs = target.clock.now();
      const titles = ["TASK", "ENDPOINT", "STATUS", "AGE", "RUN TIME", "CREATED", ""];
      terminal.answer(
        table(
          titles,
          items.map((each) => row(each, nowMs)),
          { empty: emptyText(endpoint, flags), drop: ["CREATED", "", "RUN TIME"] },
        ),
      );
      if (nextPageToken !== "") {
        terminal.say("There are more: raise --limit.");
      }
    },
  });
}

async function read(
  { options, signal }: DeploymentTarget,
  { endpoint, status }: TaskListFlags & { readonly endpoint: string },
  page: { readonly pageSize: number; readonly pageToken: string },
) {
  const { url, deployment = "", token } = options;
  const { tasks } = createTesseraClient({
    url,
    timeoutMs: CLI_CALL_TIMEOUT_MS,
    ...(typeof token === "string" && { token }),
  });
  const answer = await tasks.listTasks(
    {
      deployment,
      endpoint,
      ...page,
      ...(status !== undefined && { status: statusOf(status) }),
    },
    { signal },
  );
  return { items: answer.tasks, nextPageToken: answer.nextPageToken };
}

function statusOf(word: string): TaskStatus {
  return TaskStatus[word.toUpperCase() as keyof typeof TaskStatus];
}

function row(task: Task, nowMs: number): string[] {
  const { taskId, endpoint, status, createdAt, failure } = task;
  return [
    taskId,
    endpoint,
    (TaskStatus[status] ?? "").toLowerCase(),
    createdAt === undefined ? "" : shortTime(Math.max(0, nowMs - timestampMs(createdAt))),
    runTime(task, nowMs),
    moment(createdAt),
    failure?.message ?? "",
  ];
}

/** How long the last attempt has run; empty for a task that never started. */
function runTime({ startedAt, finishedAt }: Task, nowMs: number): string {
  if (startedAt === undefined) {
    return "";
  }
  const endMs = finishedAt === undefined ? nowMs : timestampMs(finishedAt);
  return shortTime(Math.max(0, endMs - timestampMs(startedAt)));
}

function emptyText(endpoint: string, { status }: TaskListFlags): string {
  const what = status === undefined ? "No tasks" : `No tasks in the state ${status}`;
  return endpoint === "" ? what : `${what} of ${endpoint}`;
}
