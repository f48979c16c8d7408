/** `tessera task`: commands about tasks, of a deployment and of an organization. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  createEndpoint,
  type RemoteTask,
  type TaskLogEvent,
  type TaskUpdate,
} from "../../client/deployment.ts";
import { ENDPOINT } from "../call/call.ts";
import { OUTPUT_FILE, type ResultFlags, writeResult } from "../call/result.ts";
import { waitFor } from "../call/waiting.ts";
import { type CloudActions, group, option, repeatable, YES } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { CliError, usageError } from "../failure.ts";
import { type DeploymentTarget, show, type TargetFlags, targetCommand } from "../target.ts";
import { parseMoment } from "../times.ts";
import { cancelAllCommand, deleteAllCommand, retryAllCommand } from "./bulk.ts";
import { listCommand } from "./list.ts";
import { statsCommand } from "./stats.ts";
import { priorityOf, submitCommand } from "./submit.ts";
import { eventText, stateJson, stateText } from "./view.ts";

const TASK = ["<task>", "its id"] as const;

export const taskCommand = group("task", "Submit tasks to a deployment, and see to them.", [
  submitCommand,
  statusCommand,
  getCommand,
  argumentsCommand,
  waitCommand,
  watchCommand,
  cancelCommand,
  retryCommand,
  updateCommand,
  deleteCommand,
  listCommand,
  statsCommand,
  cancelAllCommand,
  retryAllCommand,
  deleteAllCommand,
]);

function taskOf(
  { connection }: DeploymentTarget,
  [endpoint = "", id = ""]: readonly string[],
): RemoteTask {
  return createEndpoint(connection, endpoint).task(id);
}

function statusCommand(actions: CloudActions): Command {
  return targetCommand("status", actions, {
    description: "Show where a task stands.",
    arguments: [ENDPOINT, TASK],
    examples: ["tessera task status summarize_batch 0199… --deployment summarizer"],
    run: async (target, _flags, args) => {
      const state = await taskOf(target, args).getStatus({ signal: target.signal });
      show(target, stateJson(state), () => stateText(state));
    },
  });
}

interface GetFlags extends TargetFlags, ResultFlags {}

function getCommand(actions: CloudActions): Command {
  return targetCommand<GetFlags>("get", actions, {
    description: "Write the result of a task that has ended.",
    arguments: [ENDPOINT, TASK],
    options: [OUTPUT_FILE],
    formats: false,
    examples: ["tessera task get summarize_batch 0199… --deployment summarizer"],
    run: async (target, flags, args) => {
      const result = await taskOf(target, args).open({ signal: target.signal });
      await writeResult(target, result, flags);
    },
  });
}

function waitCommand(actions: CloudActions): Command {
  return targetCommand<GetFlags>("wait", actions, {
    description: "Wait until a task has ended, show how far it is, and write its result.",
    arguments: [ENDPOINT, TASK],
    options: [OUTPUT_FILE],
    formats: false,
    examples: [
      "tessera task wait summarize_batch 0199… --deployment summarizer",
      "tessera task wait summarize_batch 0199… --timeout 30s --url http://localhost:3000",
    ],
    run: async (target, flags, args) => {
      const task = taskOf(target, args);
      await waitFor({ ...target, output: "table" }, task);
      await writeResult(target, await task.open({ signal: target.signal }), flags);
    },
  });
}

interface ArgumentsFlags extends TargetFlags, ResultFlags {
  readonly file?: string;
}

function argumentsCommand(actions: CloudActions): Command {
  return targetCommand<ArgumentsFlags>("arguments", actions, {
    description: "Write the arguments that a task was submitted with, or one of their files.",
    arguments: [ENDPOINT, TASK],
    options: [
      option("--file <number>", "write this file of the arguments, by its place in `files`"),
      OUTPUT_FILE,
    ],
    formats: false,
    examples: [
      "tessera task arguments summarize_batch 0199… --deployment summarizer",
      "tessera task arguments describe 0199… --file 0 --output-file image.png",
    ],
    run: async (target, flags, args) => {
      const { signal } = target;
      const task = taskOf(target, args);
      const file = flags.file === undefined ? undefined : numberOfFile(flags.file);
      await writeResult(target, await task.openArguments({ file, signal }), flags);
    },
  });
}

function numberOfFile(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new CliError(`--file: ${text} is not the number of a file, from 0`);
  }
  return Number(text);
}

interface WatchFlags extends TargetFlags {
  readonly after: string;
}

function watchCommand(actions: CloudActions): Command {
  return targetCommand<WatchFlags>("watch", actions, {
    description: "Follow the log of a task, from its beginning until it has ended.",
    arguments: [ENDPOINT, TASK],
    options: [option("--after <sequence>", "only what comes after this event").default("0")],
    examples: [
      "tessera task watch summarize_batch 0199… --deployment summarizer",
      "tessera task watch summarize_batch 0199… -o json --url http://localhost:3000",
    ],
    run: async (target, { after }, args) => {
      const { terminal, output, signal } = target;
      const events = taskOf(target, args).watch({ signal, after: Number(after) || 0 });
      let before: TaskLogEvent | undefined;
      for await (const event of events) {
        terminal.answer(output === "json" ? JSON.stringify(event) : eventText(event, before));
        before = event.type === "log" ? event : before;
      }
    },
  });
}

interface CancelFlags extends TargetFlags {
  readonly abort?: boolean;
}

function cancelCommand(actions: CloudActions): Command {
  return targetCommand<CancelFlags>("cancel", actions, {
    description: "Cancel a task that has not started.",
    arguments: [ENDPOINT, TASK],
    options: [option("--abort", "also stop one that runs already")],
    examples: ["tessera task cancel summarize_batch 0199… --abort --deployment summarizer"],
    run: async (target, { abort = false }, args) => {
      const task = taskOf(target, args);
      await task.cancel({ abort, signal: target.signal });
      show(target, { task_id: task.id, status: "cancelled" }, () => "cancelled");
    },
  });
}

function retryCommand(actions: CloudActions): Command {
  return targetCommand("retry", actions, {
    description: "Queue a new task with the arguments of one that has ended; writes its id.",
    arguments: [ENDPOINT, TASK],
    examples: ["tessera task retry summarize_batch 0199… --deployment summarizer"],
    run: async (target, _flags, args) => {
      const task = await taskOf(target, args).retry({ signal: target.signal });
      show(target, { task_id: task.id, retry_of: args[1] }, () => task.id);
    },
  });
}

interface DeleteFlags extends CancelFlags {
  readonly yes?: boolean;
}

function deleteCommand(actions: CloudActions): Command {
  return targetCommand<DeleteFlags>("delete", actions, {
    description: "Delete a task with its arguments, its result and its log.",
    arguments: [ENDPOINT, TASK],
    options: [option("--abort", "also one that runs, which is stopped first"), YES],
    examples: ["tessera task delete summarize_batch 0199… --deployment summarizer"],
    run: async (target, { abort = false, yes }, args) => {
      const task = taskOf(target, args);
      await target.terminal.insist(`Delete task ${task.id} and all that is known of it?`, yes);
      await task.delete({ abort, signal: target.signal });
      show(target, { task_id: task.id, deleted: true }, () => "deleted");
    },
  });
}

// `tessera task update`: changes when a task starts that waits, how long it is kept, and its tags.

interface UpdateFlags extends TargetFlags {
  readonly priority?: string;
  readonly runAt?: string;
  readonly startBy?: string;
  readonly retention?: string;
  readonly tag?: readonly string[];
  readonly clearTags?: boolean;
}

function updateCommand(actions: CloudActions): Command {
  return targetCommand<UpdateFlags>("update", actions, {
    description: "Change when a task starts that waits, how long it is kept, and its tags.",
    arguments: [ENDPOINT, ["<task>", "its id"]],
    options: [
      option("--priority <number>", "from -100 to 100; higher ones run first"),
      option("--run-at <time>", "start no sooner: 2h from now, 2027-01-31T08:30Z, or now"),
      option("--start-by <time>", "fail unless it has started by then; none: it waits for ever"),
      option("--retention <duration>", "keep the result so long after its end, such as 30d"),
      repeatable("--tag <tag>", "in place of the tags that it has"),
      option("--clear-tags", "take its tags away").conflicts("tag"),
    ],
    examples: [
      "tessera task update summarize_batch 0199… --priority 50 --deployment summarizer",
      "tessera task update summarize_batch 0199… --run-at now --start-by none --deployment summarizer",
    ],
    run: async (target, flags, [endpoint = "", id = ""]) => {
      const task = createEndpoint(target.connection, endpoint).task(id);
      await task.update({ ...changeOf(flags, Date.now()), signal: target.signal });
      show(target, { task_id: task.id, updated: true }, () => "updated");
    },
  });
}

function changeOf(flags: UpdateFlags, nowMs: number): TaskUpdate {
  const { priority, runAt, startBy, retention, clearTags } = flags;
  const tags = clearTags ? [] : flags.tag;
  const time = (flag: string, text: string) => timestampDate(parseMoment(flag, text, nowMs));
  const change = {
    ...(priority !== undefined && { priority: priorityOf(priority) }),
    ...(runAt !== undefined && { runAt: runAt === "now" ? null : time("--run-at", runAt) }),
    ...(startBy !== undefined && {
      startBy: startBy === "none" ? null : time("--start-by", startBy),
    }),
    ...(retention !== undefined && { retention: parseDuration("--retention", retention) }),
    ...(tags !== undefined && { tags }),
  };
  if (Object.keys(change).length === 0) {
    throw usageError(
      "nothing would change: give --priority, --run-at, --start-by, --retention or --tag",
    );
  }
  return change;
}
