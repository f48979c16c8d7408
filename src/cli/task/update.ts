/** `tessera task update`: changes when a task starts that waits, how long it is kept, and its tags. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { createEndpoint, type TaskUpdate } from "../../client/deployment.ts";
import { ENDPOINT } from "../call/call.ts";
import { type CloudActions, option, repeatable } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { usageError } from "../failure.ts";
import { show, type TargetFlags, targetCommand } from "../target.ts";
import { parseMoment } from "../times.ts";
import { priorityOf } from "./submit.ts";

interface UpdateFlags extends TargetFlags {
  readonly priority?: string;
  readonly runAt?: string;
  readonly startBy?: string;
  readonly retention?: string;
  readonly tag?: readonly string[];
  readonly clearTags?: boolean;
}

export function updateCommand(actions: CloudActions): Command {
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
