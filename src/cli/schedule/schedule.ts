/** `tessera schedule`: calls of a task endpoint at the times of a cron expression. */
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  type ListSchedulesResponse,
  ListSchedulesResponseSchema,
  type Schedule,
  type ScheduleCatchUp,
  ScheduleOutcome,
  type ScheduleOverlap,
  ScheduleSchema,
  TaskSchema,
} from "../../client/index.ts";
import { keyWith } from "../../collections/key-with.ts";
import { ARGUMENTS_NOTE, readArguments } from "../call/arguments.ts";
import { type CloudActions, type CommandRun, callCommand, group, option } from "../command.ts";
import { usageError } from "../failure.ts";
import { fields, moment } from "../output.ts";
import { type Table, table } from "../table.ts";
import { CATCH_UPS, OVERLAPS } from "./words.ts";

const DEPLOYMENT = ["<deployment>", "the deployment's name"] as const;
const SCHEDULE = ["<schedule>", "the schedule's name"] as const;

interface ScheduleFlags {
  readonly endpointName?: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly overlap?: keyof typeof OVERLAPS;
  readonly catchUp?: keyof typeof CATCH_UPS;
  readonly paused?: boolean;
  readonly dryRun?: boolean;
}

const OPTIONS = [
  option("--endpoint-name <endpoint>", "the task endpoint that it calls"),
  option("--cron <fields>", "minute, hour, day of the month, month, day of the week"),
  option("--time-zone <zone>", "a zone of the IANA database, such as Europe/Amsterdam"),
  option("--overlap <way>", "at a time while an earlier task is under way").choices(
    Object.keys(OVERLAPS),
  ),
  option("--catch-up <times>", "what is made up for of times that were missed").choices(
    Object.keys(CATCH_UPS),
  ),
  option("--dry-run", "say when it would fire, and store nothing"),
];

export const scheduleCommand = group(
  "schedule",
  "Call a task endpoint at the times of a cron expression.",
  [
    listCommand,
    createCommand,
    updateCommand,
    deleteCommand,
    pauseCommand,
    resumeCommand,
    runCommand,
  ],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the schedules of a deployment, with their next times.",
    arguments: [DEPLOYMENT],
    examples: ["tessera schedule list summarizer"],
    run: async (call, _flags, [deployment = ""]) => {
      const { organization, client } = call;
      const found = await client.schedules.listSchedules({ organization, deployment });
      call.show(ListSchedulesResponseSchema, found, scheduleTable);
    },
  });
}

function createCommand(actions: CloudActions): Command {
  const command = callCommand<ScheduleFlags>("create", actions, {
    description: "Create a schedule.",
    arguments: [
      DEPLOYMENT,
      SCHEDULE,
      ["[arguments...]", "JSON, @file, - or key=value (see below)"],
    ],
    options: [...OPTIONS, option("--paused", "without times, until it is resumed")],
    examples: [
      "tessera schedule create summarizer nightly --endpoint-name summarize_batch --cron '0 3 * * *' --time-zone Europe/Amsterdam @texts.json",
      "tessera schedule create summarizer hourly --endpoint-name summarize_batch --cron '0 * * * *' --dry-run texts='[\"…\"]'",
    ],
    run: async (call, flags, [deployment = "", name = "", ...given]) => {
      if (flags.endpointName === undefined || flags.cron === undefined) {
        throw usageError("a schedule needs --endpoint-name, which it calls, and --cron, its times");
      }
      const { organization, client } = call;
      const created = await client.schedules.createSchedule({
        ...{ organization, deployment, validateOnly: flags.dryRun === true },
        schedule: {
          name,
          ...(await changesOf(call, flags, given)),
          ...(flags.paused === true && { paused: true }),
        },
      });
      call.show(ScheduleSchema, created, scheduleText);
      if (flags.dryRun !== true) {
        call.done(`Created schedule ${name} of ${deployment}`);
      }
    },
  });
  return command.addHelpText("after", ARGUMENTS_NOTE);
}

function updateCommand(actions: CloudActions): Command {
  const command = callCommand<ScheduleFlags>("update", actions, {
    description: "Change a schedule: what is given, and all arguments where some are.",
    arguments: [
      DEPLOYMENT,
      SCHEDULE,
      ["[arguments...]", "JSON, @file, - or key=value (see below)"],
    ],
    options: OPTIONS,
    examples: ["tessera schedule update summarizer nightly --cron '30 4 * * MON-FRI'"],
    run: async (call, flags, [deployment = "", name = "", ...given]) => {
      const { organization, client } = call;
      const updated = await client.schedules.updateSchedule({
        ...{ organization, deployment, validateOnly: flags.dryRun === true },
        schedule: { name, ...(await changesOf(call, flags, given)) },
      });
      call.show(ScheduleSchema, updated, scheduleText);
      if (flags.dryRun !== true) {
        call.done(`Changed schedule ${name} of ${deployment}`);
      }
    },
  });
  return command.addHelpText("after", ARGUMENTS_NOTE);
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand("delete", actions, {
    description: "Delete a schedule. Its tasks stay.",
    arguments: [DEPLOYMENT, SCHEDULE],
    asks: true,
    examples: ["tessera schedule delete summarizer nightly"],
    run: async (call, _flags, [deployment = "", schedule = ""]) => {
      await call.insist(`Delete schedule ${schedule} of ${deployment}?`);
      const { organization, client } = call;
      await client.schedules.deleteSchedule({ organization, deployment, schedule });
      call.done(`Deleted schedule ${schedule} of ${deployment}`);
    },
  });
}

function pauseCommand(actions: CloudActions): Command {
  return callCommand("pause", actions, {
    description: "Pause a schedule: it has no times until it is resumed.",
    arguments: [DEPLOYMENT, SCHEDULE],
    examples: ["tessera schedule pause summarizer nightly"],
    run: (call, _flags, [deployment = "", name = ""]) =>
      setPaused(call, { deployment, name, paused: true }),
  });
}

function resumeCommand(actions: CloudActions): Command {
  return callCommand("resume", actions, {
    description: "Resume a paused schedule; what passed meanwhile is not made up for.",
    arguments: [DEPLOYMENT, SCHEDULE],
    examples: ["tessera schedule resume summarizer nightly"],
    run: (call, _flags, [deployment = "", name = ""]) =>
      setPaused(call, { deployment, name, paused: false }),
  });
}

function runCommand(actions: CloudActions): Command {
  return callCommand("run", actions, {
    description: "Submit a task of a schedule now, also of a paused one; writes its id.",
    arguments: [DEPLOYMENT, SCHEDULE],
    examples: ["tessera schedule run summarizer nightly"],
    run: async (call, _flags, [deployment = "", schedule = ""]) => {
      const { organization, client } = call;
      const task = await client.schedules.runSchedule({ organization, deployment, schedule });
      call.show(TaskSchema, task, ({ taskId }) => taskId);
    },
  });
}

async function setPaused(
  call: CommandRun,
  {
    deployment,
    name,
    paused,
  }: { readonly deployment: string; readonly name: string; readonly paused: boolean },
): Promise<void> {
  const { organization, client } = call;
  const schedule = { name, paused };
  const updateMask = { paths: ["paused"] };
  const changed = await client.schedules.updateSchedule({
    ...{ organization, deployment, schedule, updateMask },
  });
  call.show(ScheduleSchema, changed, scheduleText);
  call.done(`${paused ? "Paused" : "Resumed"} schedule ${name} of ${deployment}`);
}

/** What the flags and arguments say of a schedule. */
async function changesOf(
  { terminal }: CommandRun,
  { endpointName, cron, timeZone, overlap, catchUp }: ScheduleFlags,
  given: readonly string[],
): Promise<MessageInitShape<typeof ScheduleSchema>> {
  return {
    ...(endpointName !== undefined && { endpoint: endpointName }),
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
    ...(overlap !== undefined && { overlap: OVERLAPS[overlap] }),
    ...(catchUp !== undefined && { catchUp: CATCH_UPS[catchUp] }),
    ...(given.length > 0 && { arguments: await argumentsOf(given, terminal) }),
  };
}

async function argumentsOf(
  given: readonly string[],
  { streams }: CommandRun["terminal"],
): Promise<JsonObject> {
  const args = await readArguments(given, streams.stdin);
  if (
    Object.values(args)
      .flat()
      .some((value) => value instanceof Blob)
  ) {
    throw usageError("a schedule cannot keep files: give their contents as text, or an address");
  }
  // Through JSON, because numbers of many digits are objects here.
  return JSON.parse(JSON.stringify(args)) as JsonObject;
}

function scheduleTable({ schedules }: ListSchedulesResponse): Table {
  return table(
    ["NAME", "ENDPOINT", "CRON", "ZONE", "NEXT", "LAST", ""],
    schedules.map((schedule) => [
      schedule.name,
      schedule.endpoint,
      schedule.cron,
      schedule.timeZone,
      schedule.paused ? "paused" : moment(schedule.nextTimes[0]),
      lastOf(schedule),
      schedule.problem,
    ]),
    { empty: "No schedules", drop: ["ZONE", "LAST"] },
  );
}

function scheduleText(schedule: Schedule): string {
  const { name, endpoint, cron, timeZone, overlap, catchUp, paused, nextTimes, problem } = schedule;
  return fields([
    ["Name", name],
    ["Endpoint", endpoint],
    ["Arguments", JSON.stringify(schedule.arguments ?? {})],
    ["Times", `${cron} in ${timeZone}`],
    ["Next", paused ? "paused" : nextTimes.map((time) => moment(time)).join(", ")],
    ["Overlap", keyWith<string, ScheduleOverlap>(OVERLAPS, overlap) ?? ""],
    ["Catches up", keyWith<string, ScheduleCatchUp>(CATCH_UPS, catchUp) ?? ""],
    ["Last", lastOf(schedule)],
    ["Last task", schedule.lastTaskId],
    ["Problem", problem],
  ]);
}

function lastOf({ last }: Schedule): string {
  if (last === undefined) {
    return "";
  }
  const word = ScheduleOutcome[last.outcome]?.toLowerCase() ?? "";
  return `${moment(last.time)} ${word}`;
}
