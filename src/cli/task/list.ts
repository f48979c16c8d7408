/** `tessera task list`: lists tasks of a deployment, or of all, newest first. */
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  createTesseraClient,
  ListTasksResponseSchema,
  type Task,
  TaskStatus,
} from "../../client/index.ts";
import { CLI_CALL_TIMEOUT_MS, type CloudActions, option, repeatable } from "../command.ts";
import { shortTime } from "../durations.ts";
import { LIST_OPTIONS, type ListFlags, readPages } from "../lists.ts";
import { jsonText, moment } from "../output.ts";
import { table } from "../table.ts";
import { type DeploymentTarget, type TargetFlags, targetCommand } from "../target.ts";

interface TaskListFlags extends TargetFlags, Pick<ListFlags, "limit" | "pageToken"> {
  readonly status?: string;
  readonly key?: string;
  readonly tag?: readonly string[];
}

const STATUSES = ["queued", "running", "success", "failure", "cancelled"];

export function listCommand(actions: CloudActions): Command {
  return targetCommand<TaskListFlags>("list", actions, {
    description:
      "List tasks, the newest first: of a deployment, or of all of the organization that is logged in to.",
    isOfAll: true,
    arguments: [["[endpoint]", "only of this one"]],
    options: [
      option("--status <status>", "only in this state").choices(STATUSES),
      option("--key <key>", "only with this key, such as a customer"),
      repeatable("--tag <tag>", "only with this tag"),
      ...LIST_OPTIONS,
    ],
    examples: [
      "tessera task list --status failure",
      "tessera task list summarize_batch --status failure --deployment summarizer",
      "tessera task list --url http://localhost:3000 -o json | jq -r '.tasks[].task_id'",
    ],
    run: async (target, flags, [endpoint = ""]) => {
      const { items, nextPageToken } = await readPages(flags, (page) =>
        read(target, { ...flags, endpoint }, page),
      );
      const { terminal, output, isOfAll } = target;
      if (output === "json") {
        const all = create(ListTasksResponseSchema, { tasks: [...items], nextPageToken });
        terminal.answer(jsonText(ListTasksResponseSchema, all));
        return;
      }
      const nowMs = target.clock.now();
      const titles = ["ENDPOINT", "STATUS", "AGE", "RUN TIME", "CREATED", ""];
      terminal.answer(
        table(
          ["TASK", ...(isOfAll ? ["DEPLOYMENT"] : []), ...titles],
          items.map((each) => [
            each.taskId,
            ...(isOfAll ? [each.deployment.split("/").at(-1) ?? ""] : []),
            ...row(each, nowMs),
          ]),
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
  { options, signal, isOfAll }: DeploymentTarget,
  {
    endpoint,
    status,
    key = "",
    tag = [],
    organization = "",
  }: TaskListFlags & { readonly endpoint: string },
  page: { readonly pageSize: number; readonly pageToken: string },
) {
  const { url, deployment = "", token } = options;
  const { tasks, organizationTasks } = createTesseraClient({
    url,
    timeoutMs: CLI_CALL_TIMEOUT_MS,
    ...(typeof token === "string" && { token }),
  });
  const state = status === undefined ? undefined : statusOf(status);
  const filter = { endpoint, tags: [...tag] };
  const answer = isOfAll
    ? await organizationTasks.listOrganizationTasks(
        {
          organization,
          ...filter,
          key,
          ...page,
          ...(state !== undefined && { statuses: [state] }),
        },
        { signal },
      )
    : await tasks.listTasks(
        { deployment, ...filter, key, ...page, ...(state !== undefined && { status: state }) },
        { signal },
      );
  return { items: answer.tasks, nextPageToken: answer.nextPageToken };
}

function statusOf(word: string): TaskStatus {
  return TaskStatus[word.toUpperCase() as keyof typeof TaskStatus];
}

function row(task: Task, nowMs: number): string[] {
  const { endpoint, status, createdAt, failure, queuedReason } = task;
  return [
    endpoint,
    (TaskStatus[status] ?? "").toLowerCase(),
    createdAt === undefined ? "" : shortTime(Math.max(0, nowMs - timestampMs(createdAt))),
    runTime(task, nowMs),
    moment(createdAt),
    failure?.message ?? queuedReason?.message ?? "",
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
