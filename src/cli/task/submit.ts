/** `tessera task submit`: queues a task and writes its id. */
import type { Command } from "commander";
import { createEndpoint, type SubmitOptions } from "../../client/deployment.ts";
import { ARGUMENTS, ARGUMENTS_NOTE, readArguments } from "../call/arguments.ts";
import { ENDPOINT } from "../call/call.ts";
import { type CloudActions, option, repeatable } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { usageError } from "../failure.ts";
import { show, type TargetFlags, targetCommand } from "../target.ts";

interface SubmitFlags extends TargetFlags {
  readonly idempotencyKey?: string;
  readonly priority?: string;
  readonly delay?: string;
  readonly startWithin?: string;
  readonly retention?: string;
  readonly webhook?: string;
  readonly key?: string;
  readonly tag?: readonly string[];
}

export function submitCommand(actions: CloudActions): Command {
  return targetCommand<SubmitFlags>("submit", actions, {
    description: "Queue a task; writes its id.",
    arguments: [ENDPOINT, ARGUMENTS],
    options: [
      option(
        "--idempotency-key <key>",
        "the same key and arguments give the same task again, unless that failed",
      ),
      option("--priority <number>", "from -100 to 100; higher ones run first"),
      option("--delay <duration>", "start no sooner than so long from now, such as 10m"),
      option("--start-within <duration>", "fail unless it has started within so long"),
      option("--retention <duration>", "keep the result so long after its end, such as 30d"),
      option("--webhook <name>", "tell this webhook of the deployment how it ends"),
      option("--key <key>", "whose it is among those who share the endpoint, such as a customer"),
      repeatable("--tag <tag>", "a word to find it again by, such as customer:42"),
    ],
    examples: [
      "tessera task submit summarize_batch @texts.json --deployment summarizer",
      "tessera task submit summarize_batch texts='[\"…\"]' --delay 10m --url http://localhost:3000",
    ],
    note: ARGUMENTS_NOTE,
    run: async (target, flags, [endpoint = "", ...given]) => {
      const args = await readArguments(given, target.terminal.streams.stdin);
      const options = { ...submitOptions(flags), signal: target.signal };
      const task = await createEndpoint(target.connection, endpoint).submit(args, options);
      show(target, { task_id: task.id, endpoint }, () => task.id);
    },
  });
}

function submitOptions({
  idempotencyKey,
  priority,
  delay,
  startWithin,
  retention,
  webhook,
  key,
  tag,
}: SubmitFlags): SubmitOptions {
  return {
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(priority !== undefined && { priority: priorityOf(priority) }),
    ...(delay !== undefined && { delay: parseDuration("--delay", delay) }),
    ...(startWithin !== undefined && {
      startWithin: parseDuration("--start-within", startWithin),
    }),
    ...(retention !== undefined && { retention: parseDuration("--retention", retention) }),
    ...(webhook !== undefined && { webhook }),
    ...(key !== undefined && { key }),
    ...(tag !== undefined && { tags: tag }),
  };
}

export function priorityOf(text: string): number {
  if (!/^-?\d{1,3}$/.test(text)) {
    throw usageError("--priority must be a whole number from -100 to 100");
  }
  return Number(text);
}
