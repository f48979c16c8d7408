/**
 * Fires the schedules of one deployment: submits a task at each of their times.
 *
 * Every node that runs the deployment does so, and no node is chosen: what the node's maintenance
 * finds anyway tells it the next time, an alarm rings then, and each reads what is due. The time of
 * a schedule is taken in the transaction that stores its task, and moves on to the next one, so that
 * a time is fired once, whichever node dies, and none is fired again when a clock is set back: the next
 * time is stored, and never computed from a time before it.
 *
 * A time that could not be fired within a minute is missed: nobody ran the deployment, its queue was
 * full, or its workers had not started yet. What becomes of those the schedule says (`catchUp`). A
 * time that the newest revision cannot run, because it lacks the endpoint or refuses the arguments,
 * is passed over, and the schedule says why.
 */
import { type FieldViolation, Problem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import type { ScheduleRecord } from "../../storage/hosting/schedules.ts";
import type { Firing, Storage } from "../../storage/storage.ts";
import { isFinal, scheduleKey } from "../../tasks/task.ts";
import { Alarm } from "../../time/alarm.ts";
import { SingleFlight } from "../../time/single-flight.ts";
import type { Queue } from "../queue.ts";
import { TakenByOthers } from "../submission.ts";
import { lastTime, nextTime } from "./cron.ts";

/** Age at which a time that nobody has fired is missed. */
const MISSED_AFTER_MS = 60_000;
/** How far back the times of a schedule that makes up for all of them are fired. */
const MAX_CATCH_UP_MS = 7 * 86_400_000;
/** Schedules of a deployment that are read at a time. */
const MAX_DUE_SCHEDULES = 100;
/** Times of one schedule that are fired in a row, before others have their turn. */
const MAX_TIMES_PER_TURN = 100;

/** An endpoint of the revision that serves, with the check of its arguments. */
interface FoundEndpoint {
  readonly manifest: EndpointManifest;
  readonly reader: { faultOf(payload: Payload): FieldViolation | undefined };
}

interface ScheduleFirerOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "fireSchedule" | "getTask"> & {
    readonly hosting: Pick<HostingStorage, "dueSchedules">;
  };
  readonly queue: Pick<Queue, "submit" | "cancel">;
  /** What the revision that serves has; undefined before one does. */
  readonly revision: () =>
    | { find(endpoint: string): FoundEndpoint | undefined; readonly isNewest: boolean }
    | undefined;
  /** A schedule waits for a revision that knows more of its endpoint than the one that serves. */
  onUnknown(): void;
  /** Throws where the deployment takes no work. */
  readonly admit: () => void;
  readonly log: Log;
  readonly now: () => number;
}

export class ScheduleFirer implements AsyncDisposable {
  readonly #options: ScheduleFirerOptions;
  readonly #alarm: Alarm;
  readonly #flight = new SingleFlight(() => this.#fireDue());
  #stopped = false;

  constructor(options: ScheduleFirerOptions) {
    this.#options = options;
    this.#alarm = new Alarm(() => void this.look(), options.now);
  }

  /** A schedule of the deployment has this time. */
  expect(atMs: number): void {
    this.#alarm.set(atMs);
  }

  /** Fires what is due now. Never rejects. */
  look(): Promise<void> {
    return this.#flight.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#alarm[Symbol.dispose]();
    await this.#flight[Symbol.asyncDispose]();
  }

  async #fireDue(): Promise<void> {
    const { deploymentId, storage, admit, log, now } = this.#options;
    try {
      admit();
    } catch {
      // It is closed to new work. The next round of maintenance asks again.
      return;
    }
    try {
      const due = await storage.hosting.dueSchedules({
        ...{ deploymentId, nowMs: now(), limit: MAX_DUE_SCHEDULES },
      });
      for (const schedule of due) {
        await this.#fireAll(schedule);
      }
    } catch (err) {
      log.error({ err }, "schedules could not be fired");
    }
  }

  /** Fires the times of a schedule that have come. */
  async #fireAll(schedule: ScheduleRecord): Promise<void> {
    let current: ScheduleRecord | undefined = schedule;
    for (let times = 0; current !== undefined; times += 1) {
      const { nextAtMs } = current;
      if (nextAtMs === undefined || this.#stopped) {
        return;
      }
      if (nextAtMs > this.#options.now() || times === MAX_TIMES_PER_TURN) {
        this.#alarm.set(nextAtMs);
        return;
      }
      current = await this.#fire(current, nextAtMs);
    }
  }

  /** Fires one time. Returns the schedule as it is then; undefined where nothing more is to do now. */
  async #fire(schedule: ScheduleRecord, dueMs: number): Promise<ScheduleRecord | undefined> {
    const { revision, now } = this.#options;
    const nowMs = now();
    const over = passedOver(schedule, dueMs, nowMs);
    if (over !== undefined) {
      return this.#pass(schedule, { ...over, atMs: dueMs });
    }
    const atMs = dueMs;
    const nextAtMs = nextTime(schedule, atMs);
    const serving = revision();
    if (nextAtMs === undefined || serving === undefined) {
      return undefined;
    }
    const found = serving.find(schedule.endpoint);
    const refusal = refusalOf(schedule, found);
    if (found === undefined || refusal !== undefined) {
      if (serving.isNewest) {
        return this.#pass(schedule, { outcome: "refused", message: refusal ?? "", atMs, nextAtMs });
      }
      this.#options.onUnknown();
      return undefined;
    }
    const overlaps = schedule.overlap !== "queue" && (await this.#isUnderWay(schedule));
    if (overlaps && schedule.overlap === "skip") {
      const message = `task ${schedule.lastTask?.taskId} was still under way`;
      return this.#pass(schedule, { outcome: "skipped", message, atMs, nextAtMs });
    }
    const fired = await this.#submit(schedule, { found, atMs, nextAtMs });
    // Not before the next one is stored: where that is refused, the one before goes on.
    if (overlaps && fired !== undefined && fired.lastTask.taskId !== schedule.lastTask?.taskId) {
      this.#replace(schedule);
    }
    return fired;
  }

  async #submit(
    schedule: ScheduleRecord,
    { found, atMs, nextAtMs }: FoundEndpointAt,
  ): Promise<FiredSchedule | undefined> {
    const { storage, queue } = this.#options;
    const idempotency = {
      key: scheduleKey(schedule.name, atMs),
      digest: `schedule ${schedule.name}`,
      replay: "always",
    } as const;
    try {
      const { task } = await queue.submit(
        found.manifest,
        { json: schedule.arguments, files: [] },
        {
          idempotency,
          store: async (task) => {
            const end = { outcome: "task", task } as const;
            const fired = await storage.fireSchedule({ schedule, atMs, nextAtMs, end });
            return fired === undefined || fired.outcome === "none" ? { outcome: "taken" } : fired;
          },
        },
      );
      return { ...schedule, nextAtMs, lastTask: { taskId: task.taskId, atMs } };
    } catch (err) {
      // Another node has taken the time, or the schedule was changed. A refusal stands in it.
      if (err instanceof TakenByOthers || err instanceof Problem) {
        return undefined;
      }
      throw err;
    }
  }

  /** Takes a time without a task. */
  async #pass(
    schedule: ScheduleRecord,
    passed: Omit<Firing, "schedule" | "end"> & Exclude<Firing["end"], { readonly outcome: "task" }>,
  ): Promise<ScheduleRecord | undefined> {
    const { storage, log } = this.#options;
    const { outcome, message, atMs, nextAtMs } = passed;
    const end = { outcome, message };
    if ((await storage.fireSchedule({ schedule, atMs, nextAtMs, end })) === undefined) {
      return undefined;
    }
    log.warn({ schedule: schedule.name, at: new Date(atMs).toISOString(), message }, outcome);
    return { ...schedule, nextAtMs };
  }

  async #isUnderWay({ deploymentId, lastTask }: ScheduleRecord): Promise<boolean> {
    const task =
      lastTask && (await this.#options.storage.getTask({ deploymentId, taskId: lastTask.taskId }));
    return task !== undefined && !isFinal(task.status);
  }

  /** Cancels the task before, which takes as long as its grace: the next one does not wait for it. */
  #replace({ lastTask, endpoint }: ScheduleRecord): void {
    const { queue, log } = this.#options;
    if (lastTask !== undefined) {
      const { taskId } = lastTask;
      queue.cancel({ taskId, endpoint }, true).catch((err: unknown) => {
        log.warn({ err, task: taskId }, "the task before could not be cancelled for a schedule");
      });
    }
  }
}

type FoundEndpointAt = Omit<Firing, "schedule" | "end"> & { readonly found: FoundEndpoint };
/** A schedule whose last time has a task. */
type FiredSchedule = ScheduleRecord & {
  readonly lastTask: NonNullable<ScheduleRecord["lastTask"]>;
};

/** Whether a missed time is passed over, and for which one; undefined where it is fired. */
function passedOver(
  schedule: ScheduleRecord,
  dueMs: number,
  nowMs: number,
): { readonly nextAtMs: number; readonly outcome: "missed"; readonly message: string } | undefined {
  if (nowMs - dueMs <= MISSED_AFTER_MS) {
    return undefined;
  }
  const firstMs = firstToFire(schedule, nowMs);
  return firstMs === undefined || firstMs <= dueMs
    ? undefined
    : { nextAtMs: firstMs, outcome: "missed", message: "nobody could fire it within a minute" };
}

/** The first time that is still fired, by what the schedule says of those that were missed. */
function firstToFire(schedule: ScheduleRecord, nowMs: number): number | undefined {
  switch (schedule.catchUp) {
    case "none":
      return nextTime(schedule, nowMs - MISSED_AFTER_MS - 1);
    case "one":
      return lastTime(schedule, nowMs);
    case "all":
      return nextTime(schedule, nowMs - MAX_CATCH_UP_MS);
  }
}

/** Why schedules cannot call an endpoint of the newest revision; undefined where they can. */
export function faultOfEndpoint(
  name: string,
  manifest: Pick<EndpointManifest, "kind"> | undefined,
): string | undefined {
  if (manifest === undefined) {
    return `the newest revision has no endpoint ${name}`;
  }
  return manifest.kind === "task"
    ? undefined
    : `endpoint ${name} is an api in the newest revision, which is not queued`;
}

function refusalOf(
  { endpoint, arguments: json }: ScheduleRecord,
  found: FoundEndpoint | undefined,
): string | undefined {
  const missing = faultOfEndpoint(endpoint, found?.manifest);
  if (found === undefined || missing !== undefined) {
    return missing;
  }
  const fault = found.reader.faultOf({ json, files: [] });
  return fault === undefined
    ? undefined
    : `the arguments do not fit endpoint ${endpoint} of the newest revision: ${fault.field || "they"} ${fault.description}`;
}
