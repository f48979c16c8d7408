/** The filters of lists of tasks, and their pages. */
import type { Task, TaskStatus } from "../tasks/task.ts";

/** A list of the tasks of one deployment. */
export interface TaskListing {
  readonly deploymentId: string;
  readonly endpoint?: string;
  readonly status?: TaskStatus;
  readonly key?: string;
  /** Created at this time or later. */
  readonly createdFromMs?: number;
  /** Created before this time. */
  readonly createdBeforeMs?: number;
  /** With all of these tags. */
  readonly tags?: readonly string[];
  /** Only tasks with a smaller id: those after it in the list. */
  readonly before?: string;
  readonly limit: number;
}

/** A search of tasks of several deployments. */
export interface TaskSearchQuery {
  readonly deploymentIds: readonly string[];
  readonly endpoint?: string;
  readonly key?: string;
  /** In one of these states. */
  readonly statuses?: readonly TaskStatus[];
  /** Failed with a message that contains this text; letters from A to Z match in either case. */
  readonly errorContains?: string;
  /**
   * With this text in their id, their endpoint, their arguments or their failure; letters from A
   * to Z match in either case. Arguments that do not stand in the row are known by their beginning.
   */
  readonly text?: string;
  /** Tasks that retry this one. */
  readonly retryOf?: string;
  /** With all of these tags. */
  readonly tags?: readonly string[];
  /** Queued, with a time of their start that is to come, or without one. */
  readonly waiting?: { readonly scheduled: boolean; readonly nowMs: number };
  /** Only tasks with a smaller id. */
  readonly before?: string;
  /** Only tasks with this id or a greater one. */
  readonly from?: string;
  readonly limit: number;
}

/** What of a search is counted: all but its states, between its ids. */
export interface TaskCountQuery
  extends Omit<TaskSearchQuery, "limit" | "statuses" | "waiting" | "retryOf"> {
  readonly nowMs: number;
}

/** How many tasks are in a state. */
export interface StateCount {
  readonly count: number;
  /** There may be more: a bounded number of rows was looked at. */
  readonly isPartial: boolean;
}

/** The states of tasks as lists tell them apart: those with a time to come are not `queued`. */
type CountedState = TaskStatus | "scheduled";

export type StateCounts = Readonly<Record<CountedState, StateCount>>;

/** A task that a search has found. */
export interface FoundTask extends Task {
  /** How the JSON of its arguments begins, as it was stored. */
  readonly argumentsPreview: string;
}

export interface TaskSearchPage {
  readonly tasks: FoundTask[];
  /** Undefined on the last page. */
  readonly nextBefore: string | undefined;
}
