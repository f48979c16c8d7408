/**
 * The idempotency keys of schedules: one for each time of each schedule, so that no time has two
 * tasks. A task is linked to its schedule by this key, which callers cannot choose.
 */

/** How the keys begin that only schedules use. */
export const SCHEDULE_KEY_PREFIX = "schedule/";

/** The key of the task of a schedule at a time; with `run`, of one that somebody asked for then. */
export function scheduleKey(name: string, atMs: number, run?: string): string {
  const time = new Date(atMs).toISOString();
  return [`${SCHEDULE_KEY_PREFIX}${name}`, time, ...(run === undefined ? [] : [run])].join("/");
}

/** The name of the schedule whose task was stored with this key; undefined for other keys. */
export function scheduleOfKey(key: unknown): string | undefined {
  return typeof key === "string" && key.startsWith(SCHEDULE_KEY_PREFIX)
    ? key.split("/")[1]
    : undefined;
}
