/** The filter of a deployment's log, which is in the address: a link shows the same. */
import { type RangeSearch, readRange } from "../../ui/time-range.ts";

/** The worst first. */
export const LEVELS = ["error", "warn", "info"] as const;
export type ShownLevel = (typeof LEVELS)[number];

export interface LogSearch extends RangeSearch {
  readonly search?: string;
  /** Levels, such as `warn,error`; all without. */
  readonly level?: string;
  /** The id of a task. */
  readonly task?: string;
}

/** The longest text that a page of a log searches for. */
const MAX_SEARCH_CHARACTERS = 200;

/** The longest id of a task in the address of a log. */
const MAX_TASK_ID_CHARACTERS = 64;

/** Leaves out what no filter has. */
export function readLogSearch(given: Record<string, unknown>): LogSearch {
  const { search, level, task } = given;
  const levels = typeof level === "string" ? levelsIn(level) : [];
  return {
    ...(isText(search) && { search: search.slice(0, MAX_SEARCH_CHARACTERS) }),
    ...(levels.length > 0 && levels.length < LEVELS.length && { level: levels.join(",") }),
    ...(isText(task) && { task: task.slice(0, MAX_TASK_ID_CHARACTERS) }),
    ...readRange(given),
  };
}

/** The levels that a filter names, in one order. */
export function levelsIn(level: string): readonly ShownLevel[] {
  const named = level.split(",");
  return LEVELS.filter((one) => named.includes(one));
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
