/** Conversion of schedules between the messages of `tessera.v1` and what is stored. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type Schedule,
  ScheduleCatchUp,
  ScheduleOutcome,
  ScheduleOverlap,
  ScheduleSchema,
} from "../../../gen/tessera/v1/schedule_pb.js";
import { faultOfName } from "../../auth/names.ts";
import { keyWith } from "../../collections/key-with.ts";
import { type Problem, problem } from "../../errors.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import { faultsOfTimes, nextTime, nextTimes } from "../../queue/schedules/cron.ts";
import { faultOfEndpoint } from "../../queue/schedules/firing.ts";
import { ArgumentsReader } from "../../service/input/arguments.ts";
import type {
  CatchUp,
  FiringOutcome,
  NewSchedule,
  Overlap,
  ScheduleRecord,
} from "../../storage/hosting/schedules.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { invalidField, refuse, violationsOf } from "../violations.ts";

/** Schedules of a deployment. */
export const MAX_SCHEDULES = 100;
/** Bytes of the arguments of a schedule, which are read at each of its times. */
const MAX_SCHEDULE_ARGUMENTS_BYTES = 65_536;
/** Next times of a schedule that are told. */
const MAX_NEXT_TIMES = 5;

const OVERLAP = {
  skip: ScheduleOverlap.SKIP,
  queue: ScheduleOverlap.QUEUE,
  replace: ScheduleOverlap.REPLACE,
} as const satisfies Record<Overlap, ScheduleOverlap>;

const CATCH_UP = {
  none: ScheduleCatchUp.NONE,
  one: ScheduleCatchUp.ONE,
  all: ScheduleCatchUp.ALL,
} as const satisfies Record<CatchUp, ScheduleCatchUp>;

const OUTCOME = {
  task: ScheduleOutcome.TASK,
  skipped: ScheduleOutcome.SKIPPED,
  missed: ScheduleOutcome.MISSED,
  refused: ScheduleOutcome.REFUSED,
} as const satisfies Record<FiringOutcome, ScheduleOutcome>;

/** What schedules are checked against. */
interface ScheduleCheck {
  /** Of the newest revision. */
  readonly service: ServiceManifest;
  readonly nowMs: number;
  /** The field of the request that holds the schedule. */
  readonly field: string;
}

/**
 * A schedule to store. Throws REQUEST_INVALID, ARGUMENTS_INVALID, ENDPOINT_NOT_FOUND or
 * ENDPOINT_NOT_A_TASK.
 */
export function toSchedule(
  message: Schedule,
  { service, nowMs, field }: ScheduleCheck,
): NewSchedule {
  const { name, endpoint, cron, timeZone: zone, paused = false } = message;
  const timeZone = zone || "UTC";
  const faults = { name: faultOfName(name), ...faultsOfTimes(cron, timeZone, nowMs) };
  refuse(violationsOf(faults).map((fault) => ({ ...fault, field: `${field}.${fault.field}` })));
  const json = argumentsOf(message, service);
  const nextAtMs = nextTime({ cron, timeZone }, nowMs);
  if (nextAtMs === undefined) {
    throw invalidField(`${field}.cron`, "never comes");
  }
  return {
    ...{ name, endpoint, cron, timeZone, paused, nextAtMs },
    arguments: json,
    overlap: keyWith<Overlap, ScheduleOverlap>(OVERLAP, message.overlap) ?? "skip",
    catchUp: keyWith<CatchUp, ScheduleCatchUp>(CATCH_UP, message.catchUp) ?? "one",
  };
}

/** The arguments as their endpoint takes them, as JSON. */
function argumentsOf(
  { endpoint: name, arguments: given = {} }: Schedule,
  service: ServiceManifest,
): string {
  const endpoint = service.endpoints.find((one) => one.name === name);
  if (endpoint === undefined) {
    const tasks = service.endpoints.filter(({ kind }) => kind === "task");
    throw problem(
      "ENDPOINT_NOT_FOUND",
      `the newest revision has no endpoint ${JSON.stringify(name)}; its task endpoints: ${tasks.map((one) => one.name).join(", ") || "none"}`,
    );
  }
  if (endpoint.kind !== "task") {
    throw problem(
      "ENDPOINT_NOT_A_TASK",
      `endpoint ${name} is an api, which is not queued: a schedule needs a task`,
    );
  }
  const payload = { json: JSON.stringify(given), files: [] };
  if (Buffer.byteLength(payload.json) > MAX_SCHEDULE_ARGUMENTS_BYTES) {
    const most = MAX_SCHEDULE_ARGUMENTS_BYTES / 1_024;
    throw invalidField("schedule.arguments", `must have at most ${most} KiB`);
  }
  const fault = new ArgumentsReader(endpoint).faultOf(payload);
  if (fault !== undefined) {
    throw problem(
      "ARGUMENTS_INVALID",
      `the arguments do not fit endpoint ${name}: ${fault.field || "they"} ${fault.description}`,
      { violations: [fault] },
    );
  }
  return payload.json;
}

/** What is said of a deployment with its schedules. */
export interface ScheduledDeployment {
  /** `organization/name`. */
  readonly name: string;
  readonly isStopped: boolean;
  /** Of the newest revision; undefined where nothing was deployed. */
  readonly service: ServiceManifest | undefined;
}

export function toScheduleMessage(
  record: ScheduleRecord,
  deployment: ScheduledDeployment,
  nowMs: number,
): Schedule {
  const { name, endpoint, cron, timeZone, paused, declared, createdBy, updatedBy, last } = record;
  const { nextAtMs, version } = record;
  const later =
    nextAtMs === undefined
      ? []
      : nextTimes(record, Math.max(nextAtMs, nowMs - 1), MAX_NEXT_TIMES - 1);
  const times = nextAtMs === undefined ? [] : [nextAtMs, ...later];
  return create(ScheduleSchema, {
    ...{ name, endpoint, cron, timeZone, paused, declared, createdBy, updatedBy, version },
    arguments: JSON.parse(record.arguments) as JsonObject,
    overlap: OVERLAP[record.overlap],
    catchUp: CATCH_UP[record.catchUp],
    deployment: deployment.name,
    nextTimes: times.map((ms) => timestampFromMs(ms)),
    ...(last && {
      last: {
        time: timestampFromMs(last.atMs),
        outcome: OUTCOME[last.outcome],
        message: last.message,
      },
    }),
    lastTaskId: record.lastTask?.taskId ?? "",
    problem: problemOf(record, deployment),
    createdAt: timestampFromMs(record.createdAtMs),
    updatedAt: timestampFromMs(record.updatedAtMs),
  });
}

/** What keeps a schedule from submitting tasks; empty for nothing. */
function problemOf(
  { endpoint: name, paused, last }: ScheduleRecord,
  { isStopped, service }: ScheduledDeployment,
): string {
  if (paused) {
    return "";
  }
  if (isStopped) {
    return "the deployment is stopped";
  }
  const fault = faultOfEndpoint(
    name,
    service?.endpoints.find((one) => one.name === name),
  );
  return fault ?? (last?.outcome === "refused" ? last.message : "");
}

/** The error for a deployment that would have too many schedules. */
export function tooManySchedules(name: string): Problem {
  return problem(
    "LIMIT_REACHED",
    `deployment ${name} would have more than ${MAX_SCHEDULES} schedules: delete some`,
  );
}
