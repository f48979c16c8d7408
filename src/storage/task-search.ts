/**
 * The k-way merge behind searches over several deployments, as far as both databases do it alike.
 *
 * Each deployment is scanned from its newest task on, as far as its share of a
 * budget of rows. The scan that ended at the newest id is the floor: only above
 * it is every deployment known, so the page ends there and the next begins.
 */
import type { Task } from "../tasks/task.ts";
import type { TaskSearchPage, TaskSearchQuery } from "./listing.ts";

/** Rows scanned for one page, of all deployments together. */
const MAX_SCANNED_ROWS = 2_000;
/** Rows scanned of each deployment, however many there are. */
const MIN_SCANNED_ROWS = 100;

/** How many rows of each deployment a page looks at. */
export function scannedRows(search: TaskSearchQuery): number {
  const { deploymentIds, endpoint, statuses, errorContains, limit } = search;
  const share = Math.floor(MAX_SCANNED_ROWS / Math.max(deploymentIds.length, 1));
  const most = Math.max(share, MIN_SCANNED_ROWS);
  const everyRowFits = [endpoint, statuses, errorContains].every((part) => part === undefined);
  return everyRowFits ? Math.min(most, limit + 1) : most;
}

/**
 * The smallest set of tasks that has all that fit: `live` is queued and running, `unsuccessful`
 * is failed and cancelled, which has an index of its own.
 */
export function sourceOf({
  statuses,
  errorContains,
}: TaskSearchQuery): "all" | "live" | "unsuccessful" {
  const isUnsuccessful = statuses?.every((one) => one === "failure" || one === "cancelled");
  if (errorContains !== undefined || isUnsuccessful === true) {
    return "unsuccessful";
  }
  return statuses?.every((one) => one === "queued" || one === "running") ? "live" : "all";
}

/**
 * The text to look for in the stored JSON of a failure, in lower case. Every failure that fits
 * contains it; `pageOf` leaves out those that contain it elsewhere than in the message.
 */
export function storedText({ errorContains }: TaskSearchQuery): string | null {
  return errorContains === undefined ? null : lowerCase(JSON.stringify(errorContains).slice(1, -1));
}

/**
 * Makes the page.
 *
 * @param found newest first, at most one more than the limit, none below the floor
 * @param floor undefined when every deployment was scanned to its end
 */
export function pageOf(
  { limit, errorContains }: TaskSearchQuery,
  found: readonly Task[],
  floor: string | undefined,
): TaskSearchPage {
  const page = found.slice(0, limit);
  const nextBefore = found.length > limit ? page.at(-1)?.taskId : floor;
  const text = errorContains === undefined ? undefined : lowerCase(errorContains);
  const tasks = page.filter(
    ({ status, failure }) =>
      text === undefined ||
      (status === "failure" && lowerCase(failure?.message ?? "").includes(text)),
  );
  return { tasks, nextBefore };
}

/** Lower case as both databases write it: of A to Z alone. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
