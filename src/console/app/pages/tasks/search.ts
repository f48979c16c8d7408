/** The filter of a list of tasks, which is in the address: a link shows the same. */
import { useDeferredValue, useMemo } from "react";
import type { TaskFilter } from "../../api/tasks.ts";
import { SCHEDULED, type ShownState, STATES } from "./state.tsx";

/** How far back tasks may be accepted, in milliseconds, by their words in the address. */
export const PERIODS = {
  "15m": ["Last 15 minutes", 900_000],
  "1h": ["Last hour", 3_600_000],
  "24h": ["Last 24 hours", 86_400_000],
  "7d": ["Last 7 days", 604_800_000],
} as const satisfies Readonly<Record<string, readonly [label: string, ms: number]>>;

/** The longest text that the server searches for. */
export const MAX_TEXT_CHARACTERS = 200;

/** Tags that the server searches for at once. */
const MAX_TAGS = 10;
/** The longest tag. */
const MAX_TAG_CHARACTERS = 64;

/** Tags as people write them, with commas between. */
export function tagsIn(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()))].filter((tag) => tag !== "");
}

/** What the address says of the filter: the word of a state, names, texts and times. */
export interface TaskSearch {
  readonly status?: string;
  readonly endpoint?: string;
  readonly deployment?: string;
  /** Text of the id, the endpoint, the arguments or the error. */
  readonly text?: string;
  /** Text of the error alone. */
  readonly error?: string;
  /** Whose tasks. */
  readonly key?: string;
  /** With commas between. */
  readonly tags?: string;
  readonly since?: keyof typeof PERIODS;
  /** Times without a zone, as fields of the browser have them. */
  readonly from?: string;
  readonly until?: string;
}

/** The words of the states, in the order of a task's life. */
export const WORDS: readonly string[] = [
  SCHEDULED,
  ...Object.values(STATES).map(([, word]) => word),
];

/** Leaves out what no filter has. */
export function readSearch(given: Record<string, unknown>): TaskSearch {
  const { status, since } = given;
  const texts = ["endpoint", "deployment", "text", "error", "key", "tags"].flatMap((name) => {
    const text = given[name];
    return typeof text === "string" && text !== ""
      ? [[name, text.slice(0, MAX_TEXT_CHARACTERS)]]
      : [];
  });
  const times = ["from", "until"].flatMap((name) => {
    const time = given[name];
    return typeof time === "string" && !Number.isNaN(Date.parse(time)) ? [[name, time]] : [];
  });
  return {
    ...(typeof status === "string" && WORDS.includes(status) && { status }),
    ...Object.fromEntries(texts),
    ...(typeof since === "string" && Object.hasOwn(PERIODS, since) && { since }),
    ...Object.fromEntries(times),
  };
}

/** What the server is asked for; a period of the address ends at `nowMs`. */
export function filterOf(
  { status, since, from, until, tags = "", ...texts }: TaskSearch,
  nowMs: number,
): TaskFilter {
  const isQueued = status === SCHEDULED || status === STATES.TASK_STATUS_QUEUED[1];
  const state = isQueued
    ? "TASK_STATUS_QUEUED"
    : Object.entries(STATES).find(([, [, word]]) => word === status)?.[0];
  const asked = tagsIn(tags).slice(0, MAX_TAGS);
  const begin = since === undefined ? from : nowMs - PERIODS[since][1];
  return {
    ...texts,
    ...(asked.length > 0 && { tags: asked.map((tag) => tag.slice(0, MAX_TAG_CHARACTERS)) }),
    ...(state !== undefined && { status: state as ShownState }),
    ...(isQueued && { scheduled: status === SCHEDULED }),
    ...(begin !== undefined && { createdFrom: new Date(begin).toISOString() }),
    ...(since === undefined &&
      until !== undefined && { createdBefore: new Date(until).toISOString() }),
  };
}

/** Periods begin at multiples of this part of their length, so that a list stays one list for a while. */
const MAX_STEPS = 30;

/** The filter of an address, of which the list follows when it has come. */
export function useFilter(search: TaskSearch): TaskFilter {
  const stepMs = search.since === undefined ? 1 : PERIODS[search.since][1] / MAX_STEPS;
  const nowMs = search.since === undefined ? 0 : Math.floor(Date.now() / stepMs) * stepMs;
  return useDeferredValue(useMemo(() => filterOf(search, nowMs), [search, nowMs]));
}
