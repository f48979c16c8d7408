/** Answers of several databases to one question, put together. */

import type { Task } from "../../tasks/task.ts";
import type { StateCounts } from "../listing.ts";
import type { DueCount, OldestWaiting, QueueCount, QueueState } from "../queues.ts";
import type { Survey } from "../storage.ts";

/** A page of tasks, newest first; `nextBefore` is where its scan has ended. */
interface Page<Found extends Pick<Task, "taskId">> {
  readonly tasks: Found[];
  readonly nextBefore: string | undefined;
}

/**
 * Merges pages that begin at one place. The page whose scan has ended at the newest id is the floor: what
 * is below it may be lacking of that database, so the merged page ends there at the latest.
 */
export function mergedPage<Found extends Pick<Task, "taskId">>(
  pages: readonly Page<Found>[],
  limit: number,
): Page<Found> {
  const floor = pages.reduce<string | undefined>(
    (most, { nextBefore }) =>
      nextBefore !== undefined && (most === undefined || nextBefore > most) ? nextBefore : most,
    undefined,
  );
  const found = pages
    .flatMap(({ tasks }) => tasks)
    .filter(({ taskId }) => floor === undefined || taskId >= floor)
    .sort((one, other) => (one.taskId < other.taskId ? 1 : -1));
  const tasks = found.slice(0, limit);
  return { tasks, nextBefore: found.length > limit ? tasks.at(-1)?.taskId : floor };
}

/** Sums up counts by state. */
export function summedStates(all: readonly StateCounts[]): StateCounts {
  const [first, ...others] = all;
  if (first === undefined) {
    throw new Error("no database has counted");
  }
  const states = Object.keys(first) as (keyof StateCounts)[];
  return Object.fromEntries(
    states.map((state) => [
      state,
      {
        count: others.reduce((sum, one) => sum + one[state].count, first[state].count),
        isPartial: all.some((one) => one[state].isPartial),
      },
    ]),
  ) as unknown as StateCounts;
}

/** Puts together what has the same key. */
function combined<Item>(
  all: readonly (readonly Item[])[],
  keyOf: (item: Item) => string,
  combine: (one: Item, other: Item) => Item,
): Item[] {
  const found = new Map<string, Item>();
  for (const item of all.flat()) {
    const before = found.get(keyOf(item));
    found.set(keyOf(item), before === undefined ? item : combine(before, item));
  }
  return [...found.values()];
}

const byEndpoint = ({ endpoint }: { readonly endpoint: string }): string => endpoint;
const byQueue = (queue: { readonly deploymentId: string; readonly endpoint: string }): string =>
  `${queue.deploymentId}/${queue.endpoint}`;

export function summedCounts(all: readonly (readonly QueueCount[])[]): QueueCount[] {
  return combined(all, byEndpoint, (one, other) => ({
    endpoint: one.endpoint,
    queued: one.queued + other.queued,
    running: one.running + other.running,
  }));
}

/** `limit`: what each was counted up to. */
export function summedDue(all: readonly (readonly DueCount[])[], limit: number): DueCount[] {
  return combined(all, byEndpoint, ({ endpoint, due }, other) => ({
    endpoint,
    due: Math.min(limit, due + other.due),
  }));
}

export function oldestOf(all: readonly (readonly OldestWaiting[])[]): OldestWaiting[] {
  return combined(all, byEndpoint, (one, other) => (one.dueAtMs <= other.dueAtMs ? one : other));
}

export function mergedStates(all: readonly (readonly QueueState[])[]): QueueState[] {
  return combined(all, byQueue, (one, other) => ({
    ...one,
    queued: one.queued + other.queued,
    running: one.running + other.running,
    oldestDueAtMs: least([one.oldestDueAtMs, other.oldestDueAtMs]),
  }));
}

export function mergedSurvey(all: readonly Survey[]): Survey {
  return {
    schedules: all.flatMap(({ schedules }) => schedules),
    expiredLeases: all.some(({ expiredLeases }) => expiredLeases),
    overdueTasks: all.some(({ overdueTasks }) => overdueTasks),
    due: combined(
      all.map(({ due }) => due),
      byQueue,
      (one) => one,
    ),
    suspects: combined(
      all.map(({ suspects }) => suspects),
      byQueue,
      (one, other) => ({ ...one, count: one.count + other.count }),
    ),
  };
}

/** The smallest of the numbers that are there. */
export function least(numbers: readonly (number | undefined)[]): number | undefined {
  const there = numbers.filter((one) => one !== undefined);
  return there.length === 0 ? undefined : Math.min(...there);
}
