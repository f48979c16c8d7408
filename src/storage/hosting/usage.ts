/**
 * Who used what: sums by day, deployment, endpoint and token.
 *
 * A task is counted where it is stored, and what an attempt of it used where its end is stored, in
 * the same transaction each: neither is lost or counted twice, whoever dies. Nodes sum up the calls
 * of apis, and flush the sums with `addUsage`.
 */
import type { Units } from "../../protocol/units.ts";

const DAY_MS = 86_400_000;

/** The day of UTC that a time is in, since 1970. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}

/** When a day begins, in milliseconds since 1970. */
export function startOfDay(day: number): number {
  return day * DAY_MS;
}

/** SQL: the day of a time, an expression in milliseconds since 1970. */
export function dayOfSql(timeMs: string): string {
  return `(${timeMs} / ${DAY_MS})`;
}

/** How long usage is kept: 13 months, so that a month can be compared with that of the year before. */
export const KEPT_DAYS = 400;

/** What an attempt used, besides what the storage knows itself. */
export interface AttemptUse {
  /** Time of GPUs. */
  readonly gpuMs: number;
  /** Absent: its function reported nothing. */
  readonly units?: Units | undefined;
}

export interface UsageAmounts {
  /** Calls of apis, and requests to mounted servers. */
  readonly calls: number;
  /** Tasks that were submitted. */
  readonly tasks: number;
  /** How long calls and attempts ran that have ended. */
  readonly runMs: number;
  /** The part of it that GPUs were had. */
  readonly gpuMs: number;
  /** Of arguments. */
  readonly bytesIn: number;
  /** Of results. */
  readonly bytesOut: number;
  readonly units: Units;
}

/** What the calls of an api used, for one caller. */
export interface UsedByCalls extends Omit<UsageAmounts, "tasks"> {
  readonly deploymentId: string;
  readonly day: number;
  readonly endpoint: string;
  /** Empty: they came without a token. */
  readonly tokenId: string;
}

/** What sums of usage are told apart by. */
export type UsageKey = "day" | "deployment" | "endpoint" | "token";

export interface UsageQuery {
  readonly organizationId: string;
  readonly fromDay: number;
  /** Exclusive. */
  readonly toDay: number;
  readonly by: readonly UsageKey[];
  /** Their names. Empty: all. */
  readonly deployments: readonly string[];
  /** Ids. Empty: all, and the use without a token. */
  readonly tokenIds: readonly string[];
  readonly limit: number;
}

/** A sum; what it is not told apart by is undefined. */
export interface UsageSum extends UsageAmounts {
  readonly day: number | undefined;
  /** Its name, also of one that was deleted. */
  readonly deployment: string | undefined;
  readonly endpoint: string | undefined;
  /** The id is empty for what was used without a token; the name for a token that is not known. */
  readonly token: { readonly id: string; readonly name: string } | undefined;
}

export interface UsageStorage {
  /**
   * Adds what calls used. A flush that a recorder repeats, or one with a lower sequence, adds nothing.
   * @param parameters.recorder which start of which node
   */
  addUsage(parameters: {
    readonly recorder: string;
    readonly sequence: number;
    readonly day: number;
    readonly rows: readonly UsedByCalls[];
  }): Promise<void>;

  /** Sums up what an organization used, at most `limit` sums, in the order of their keys. */
  readUsage(parameters: UsageQuery): Promise<UsageSum[]>;

  /** Deletes at most `limit` rows of each kind that are older than `KEPT_DAYS`; returns how many. */
  pruneUsage(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}
