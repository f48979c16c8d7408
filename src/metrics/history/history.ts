/** What is asked of what was measured over time, and answered. */
import type { Selector } from "../selector/parse.ts";
import type { LeftOut } from "./interval.ts";
import type { MeasureName } from "./measures.ts";
import type { AskedRange, Range } from "./range.ts";
import type { TaskTally } from "./task-tally.ts";

type Statistic = "rate" | "average" | "p50" | "p95" | "p99";

/** The percentiles of a histogram that are answered. */
export const PERCENTILES = [
  ["p50", 0.5],
  ["p95", 0.95],
  ["p99", 0.99],
] as const satisfies readonly (readonly [Statistic, number])[];

/** Series of a service in one answer; a histogram counts once. */
export const MAX_CUSTOM_SERIES = 100;

/** Series of a service beyond those in an answer that are told apart to count them. */
export const MAX_COUNTED_SERIES = 1_000;

export interface HistoryQuery {
  readonly organizationId: string;
  /** Undefined: all deployments of the organization together. */
  readonly deployment: { readonly deploymentId: string } | undefined;
  readonly measures: readonly MeasureName[];
  /** For the service's own metrics. */
  readonly selectors: readonly Selector[];
  readonly range: AskedRange;
  readonly signal: AbortSignal;
}

export interface HistorySeries {
  readonly name: string;
  readonly custom: boolean;
  readonly statistic: Statistic;
  readonly labels: Readonly<Record<string, string>>;
  /** NaN where nothing is known. */
  readonly values: readonly number[];
  /** The statistic of all points together; NaN where nothing is known. */
  readonly whole: number;
}

export interface HistoryAnswer extends Range {
  readonly series: readonly HistorySeries[];
  /** More series of the service were selected than are in it. */
  readonly truncated: boolean;
  /** Those, and series that nodes did not keep: at least this number of each metric. */
  readonly leftOut: LeftOut;
}

/** What the tasks of an organization did until now. */
export interface TasksQuery {
  readonly organizationId: string;
  /** A minute to 24 hours. */
  readonly windowMs: number;
  readonly nowMs: number;
}

export interface TasksAnswer {
  /** The time that is covered: not less than the window. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Deployments that are gone may be in it. */
  readonly tally: TaskTally;
}

/** Sorts by name and labels, so that answers have one order. */
export function sorted<Item extends { readonly name: string; readonly labels: readonly string[] }>(
  items: readonly Item[],
): Item[] {
  const key = ({ name, labels }: Item) => JSON.stringify([name, labels]);
  return [...items].sort((one, other) => (key(one) < key(other) ? -1 : 1));
}
