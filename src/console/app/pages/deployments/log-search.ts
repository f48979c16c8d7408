/** The filter of a deployment's log, which is in the address: a link shows the same. */

/** How far back lines may be, in milliseconds, by their words in the address. */
export const PERIODS = {
  "15m": ["the last 15 minutes", 900_000],
  "1h": ["the last hour", 3_600_000],
  "24h": ["the last 24 hours", 86_400_000],
} as const satisfies Readonly<Record<string, readonly [label: string, ms: number]>>;

/** The levels that a filter can ask for at least; all lines have the first. */
export const LEAST_LEVELS = {
  warn: "warnings and errors",
  error: "errors",
} as const;

export interface LogSearch {
  readonly search?: string;
  readonly level?: keyof typeof LEAST_LEVELS;
  /** The id of a task. */
  readonly task?: string;
  readonly since?: keyof typeof PERIODS;
}

/** The longest text that the server searches for. */
const MAX_SEARCH_CHARACTERS = 200;
/** The longest id of a task that the server takes. */
const MAX_TASK_ID_CHARACTERS = 64;

/** Leaves out what no filter has. */
export function readLogSearch(given: Record<string, unknown>): LogSearch {
  const { search, level, task, since } = given;
  return {
    ...(typeof search === "string" &&
      search !== "" && { search: search.slice(0, MAX_SEARCH_CHARACTERS) }),
    ...(isOneOf(LEAST_LEVELS, level) && { level }),
    ...(typeof task === "string" && task !== "" && { task: task.slice(0, MAX_TASK_ID_CHARACTERS) }),
    ...(isOneOf(PERIODS, since) && { since }),
  };
}

function isOneOf<Words extends object>(words: Words, word: unknown): word is keyof Words {
  return typeof word === "string" && Object.hasOwn(words, word);
}

/** What the server is asked for. */
export function logFilterAt({ search = "", level, task = "", since }: LogSearch, nowMs: number) {
  return {
    search,
    minLevel: level ?? "",
    taskId: task,
    ...(since !== undefined && { startTime: new Date(nowMs - PERIODS[since][1]).toISOString() }),
  };
}
