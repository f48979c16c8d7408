/**
 * The k-way merge behind searches over several deployments, as far as both databases do it alike.
 *
 * Each deployment is scanned from its newest task on, as far as its share of a
 * budget of rows. The scan that ended at the newest id is the floor: only above
 * it is every deployment known, so the page ends there and the next begins.
 *
 * Counts by state scan the same sources with a budget of their own, and each
 * source says whether it was scanned to its end.
 */
import type {
  FoundTask,
  StateCounts,
  TaskCountQuery,
  TaskSearchPage,
  TaskSearchQuery,
} from "./listing.ts";
import type { TaskKey } from "./storage.ts";

/** Rows scanned for one page, of all deployments together. */
const MAX_SCANNED_ROWS = 2_000;
/** Rows scanned of each deployment, however many there are. */
const MIN_SCANNED_ROWS = 100;
/** Rows of each source scanned for one count, of all deployments together; of texts fewer, as for a page. */
const MAX_COUNTED_ROWS = 10_000;
/** Rows of each source and deployment scanned for one count, however many there are. */
const MIN_COUNTED_ROWS = 10;

/** Characters of the arguments that a list shows. */
export const MAX_SHOWN_CHARACTERS = 200;

/** How many rows of each deployment a page looks at. */
export function scannedRows(search: TaskSearchQuery): number {
  const { deploymentIds, endpoint, key, statuses, errorContains, text, waiting, tags, limit } =
    search;
  const share = Math.floor(MAX_SCANNED_ROWS / Math.max(deploymentIds.length, 1));
  const most = Math.max(share, MIN_SCANNED_ROWS);
  const parts = [endpoint, key, statuses, errorContains, text, waiting, tags];
  const everyRowFits = parts.every((part) => part === undefined);
  return everyRowFits ? Math.min(most, limit + 1) : most;
}

/** How many rows of each source and deployment a count looks at. */
export function countedRows({ deploymentIds, text, errorContains }: TaskCountQuery): number {
  const readsTexts = text !== undefined || errorContains !== undefined;
  const most = readsTexts ? MAX_SCANNED_ROWS : MAX_COUNTED_ROWS;
  return Math.max(Math.floor(most / Math.max(deploymentIds.length, 1)), MIN_COUNTED_ROWS);
}

/**
 * The smallest set of tasks that has all that fit: `live` is queued and running, `unsuccessful`
 * is failed and cancelled, `retries` are those of one task, `tagged` all that have tags. The last
 * three have indexes of their own.
 */
export function sourceOf({
  statuses,
  errorContains,
  retryOf,
  waiting,
  tags,
}: TaskSearchQuery): "all" | "live" | "unsuccessful" | "retries" | "tagged" {
  if (retryOf !== undefined) {
    return "retries";
  }
  if (tags !== undefined) {
    return "tagged";
  }
  const isUnsuccessful = statuses?.every((one) => one === "failure" || one === "cancelled");
  if (errorContains !== undefined || isUnsuccessful === true) {
    return "unsuccessful";
  }
  const isLive = statuses?.every((one) => one === "queued" || one === "running");
  return waiting !== undefined || isLive === true ? "live" : "all";
}

/** Text as it is looked for in stored rows, in lower case: as it is, and as JSON writes it. */
interface StoredText {
  readonly plain: string;
  readonly json: string;
}

export function storedText(text: string | undefined): StoredText | undefined {
  return text === undefined
    ? undefined
    : { plain: lowerCase(text), json: lowerCase(JSON.stringify(text).slice(1, -1)) };
}

/**
 * The text to look for in the stored JSON of a failure, in lower case. Every failure that fits
 * contains it; `pageOf` leaves out those that contain it elsewhere than in the message.
 */
export function storedErrorText(errorContains: string | undefined): string | null {
  return storedText(errorContains)?.json ?? null;
}

/** The key alone of a task. */
export function keyOf({ deploymentId, taskId }: TaskKey): TaskKey {
  return { deploymentId, taskId };
}

/**
 * Makes a page of keys.
 *
 * @param found newest first, at most one more than the limit, none below the floor
 * @param floor undefined when every deployment was scanned to its end, or as far as the limit
 */
export function pageOfKeys<Key extends TaskKey>(
  { limit }: TaskSearchQuery,
  found: readonly Key[],
  floor: string | undefined,
) {
  const keys = found.slice(0, limit);
  return { keys, nextBefore: found.length > limit ? keys.at(-1)?.taskId : floor };
}

/** Makes a page of tasks; the parameters are those of `pageOfKeys`. */
export function pageOf(
  search: TaskSearchQuery,
  found: readonly FoundTask[],
  floor: string | undefined,
): TaskSearchPage {
  const { keys: page, nextBefore } = pageOfKeys(search, found, floor);
  const { errorContains } = search;
  const text = errorContains === undefined ? undefined : lowerCase(errorContains);
  const tasks = page.filter(
    ({ status, failure }) =>
      text === undefined ||
      (status === "failure" && lowerCase(failure?.message ?? "").includes(text)),
  );
  return { tasks, nextBefore };
}

/** What was counted in one source; numbers are absent where nothing was scanned. */
type CountedRow = Readonly<Record<string, unknown>>;

/** Sums up what was counted, per source in rows of each deployment, of which none has scanned more than `most`. */
export function countsOf(
  counted: Readonly<Record<"live" | "unsuccessful" | "succeeded", readonly CountedRow[]>>,
  most: number,
): StateCounts {
  const of = (source: keyof typeof counted, state: string) => ({
    count: counted[source].reduce((sum, row) => sum + Number(row[state] ?? 0), 0),
    isPartial: counted[source].some((row) => Number(row.scanned) >= most),
  });
  return {
    scheduled: of("live", "scheduled"),
    queued: of("live", "queued"),
    running: of("live", "running"),
    success: of("succeeded", "success"),
    failure: of("unsuccessful", "failure"),
    cancelled: of("unsuccessful", "cancelled"),
  };
}

/** Lower case as both databases write it: of A to Z alone. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
