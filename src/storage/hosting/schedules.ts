/**
 * The part of the hosting port for schedules. A schedule submits a task of its deployment at each
 * of its times; which those are, its owner computes (`src/queue/schedules/cron.ts`). What fires one is
 * `fireSchedule` of the storage port, because that stores the task as well.
 */
import type { Deed } from "../accounts/deed.ts";
import type { DeploymentKey } from "./deployment-key.ts";

/** What happens at a time at which the task of an earlier one is still under way. */
export type Overlap = "skip" | "queue" | "replace";

/** What becomes of times that nobody fired when they came: nothing, one task, or one for each. */
export type CatchUp = "none" | "one" | "all";

/** What its author says of a schedule. */
interface ScheduleSpec {
  readonly name: string;
  /** A task endpoint. */
  readonly endpoint: string;
  /** JSON. */
  readonly arguments: string;
  /** Five fields. */
  readonly cron: string;
  /** A zone of the IANA database. */
  readonly timeZone: string;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly paused: boolean;
}

/** A schedule to store, with its first time. */
export interface NewSchedule extends ScheduleSpec {
  readonly nextAtMs: number;
}

/** A schedule as a deploy declares it; without `paused`, it stays as it is. */
export type DeclaredSchedule = Omit<NewSchedule, "paused"> & Partial<Pick<NewSchedule, "paused">>;

/** What became of a time: a task, or none because of the one before, of its age, or of a refusal. */
export type FiringOutcome = "task" | "skipped" | "missed" | "refused";

export interface ScheduleRecord extends DeploymentKey, ScheduleSpec {
  /** Whether a deploy made it, from `tessera.yaml`. */
  readonly declared: boolean;
  readonly version: number;
  /** The time to fire next; undefined while it is paused. */
  readonly nextAtMs: number | undefined;
  /** The task that it submitted last, for which time. */
  readonly lastTask: { readonly taskId: string; readonly atMs: number } | undefined;
  /** What became of its last time. */
  readonly last:
    | { readonly atMs: number; readonly outcome: FiringOutcome; readonly message: string }
    | undefined;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly updatedAtMs: number;
  readonly updatedBy: string;
}

/** A time that is taken from a schedule, as it was read. */
export interface TakenTime {
  readonly schedule: ScheduleRecord;
  readonly atMs: number;
  /** The time after it. */
  readonly nextAtMs: number;
  readonly outcome: FiringOutcome;
  readonly message: string;
  /** The task that is stored with it. */
  readonly taskId: string | undefined;
}

type NamedSchedule = DeploymentKey & { readonly name: string };

export interface ScheduleStorage {
  /** Lists the schedules of a deployment, by name. */
  listSchedules(parameters: DeploymentKey): Promise<ScheduleRecord[]>;

  /** Returns a schedule; undefined when the deployment has none of this name. */
  getSchedule(parameters: NamedSchedule): Promise<ScheduleRecord | undefined>;

  /** Lists at most `limit` schedules of a deployment whose time has come, the earliest first. */
  dueSchedules(
    parameters: Pick<DeploymentKey, "deploymentId"> & {
      readonly nowMs: number;
      readonly limit: number;
    },
  ): Promise<ScheduleRecord[]>;

  /** Creates a schedule; `limit`: when the deployment has that many. */
  createSchedule(
    parameters: Deed & DeploymentKey & { readonly schedule: NewSchedule; readonly limit: number },
  ): Promise<
    | { readonly outcome: "created"; readonly schedule: ScheduleRecord }
    | { readonly outcome: "name_taken" | "limit" | "deployment_gone" }
  >;

  /**
   * Replaces what a schedule says. Its next time becomes `nextAtMs` where its times change or it is
   * resumed: what passed while it was paused is not made up for. `version` is the one that the
   * caller has seen.
   */
  updateSchedule(
    parameters: Deed & DeploymentKey & { readonly schedule: NewSchedule; readonly version: number },
  ): Promise<
    | { readonly outcome: "updated"; readonly schedule: ScheduleRecord }
    | { readonly outcome: "not_found" | "version_conflict" }
  >;

  /** Deletes a schedule; its tasks stay. */
  deleteSchedule(
    parameters: Deed & NamedSchedule,
  ): Promise<{ readonly outcome: "deleted" | "not_found" }>;
}
