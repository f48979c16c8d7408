/** The filters of lists of tasks, and their pages. */
import type { Task, TaskStatus } from "../tasks/task.ts";

/** A list of the tasks of one deployment. */
export interface TaskListing {
  readonly deploymentId: string;
  readonly endpoint?: string;
  readonly status?: TaskStatus;
  /** Created at this time or later. */
  readonly createdFromMs?: number;
  /** Created before this time. */
  readonly createdBeforeMs?: number;
  /** Only tasks with a smaller id: those after it in the list. */
  readonly before?: string;
  readonly limit: number;
}

/** A search of tasks of several deployments. */
export interface TaskSearchQuery {
  readonly deploymentIds: readonly string[];
  readonly endpoint?: string;
  /** In one of these states. */
  readonly statuses?: readonly TaskStatus[];
  /** Failed with a message that contains this text; letters from A to Z match in either case. */
  readonly errorContains?: string;
  /** Only tasks with a smaller id. */
  readonly before?: string;
  /** Only tasks with this id or a greater one. */
  readonly from?: string;
  readonly limit: number;
}

export interface TaskSearchPage {
  readonly tasks: Task[];
  /** Undefined on the last page. */
  readonly nextBefore: string | undefined;
}
