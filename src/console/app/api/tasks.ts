/** Reads of tasks, shared by pages. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { TaskJson, TaskStatusJson } from "../../../../gen/tessera/v1/task_pb.js";
import { organizationTasks, tasks } from "./clients.ts";

/** Tasks that one call lists. */
const MAX_PAGE = 100;

/** How often a task is read again that has not ended: its events tell the rest. */
const REFRESH_MS = 5_000;

/** How often the newest tasks are read again while somebody looks. */
const LIST_REFRESH_MS = 2_000;

/** A task and the deployment that it belongs to. */
export interface TaskName {
  readonly organization: string;
  readonly deployment: string;
  readonly taskId: string;
}

/** What a list of tasks is restricted to. */
export interface TaskFilter {
  readonly status?: TaskStatusJson | undefined;
  readonly endpoint?: string | undefined;
  readonly deployment?: string | undefined;
  /** Text of the error that a task failed with. */
  readonly error?: string | undefined;
}

/** The name of a deployment in calls: `organization/name`. */
export const fullName = ({
  organization,
  deployment,
}: Pick<TaskName, "organization" | "deployment">) => `${organization}/${deployment}`;

/** True for a task that has a final state. */
export const hasEnded = ({ status }: TaskJson): boolean =>
  status === "TASK_STATUS_SUCCESS" ||
  status === "TASK_STATUS_FAILURE" ||
  status === "TASK_STATUS_CANCELLED";

/** One task with its attempts. */
export const taskOf = (name: TaskName) =>
  queryOptions({
    queryKey: ["task", name.organization, name.deployment, name.taskId],
    queryFn: ({ signal }) =>
      tasks.getTask({ deployment: fullName(name), taskId: name.taskId }, { signal }),
    refetchInterval: ({ state: { data } }) => (data && hasEnded(data) ? false : REFRESH_MS),
  });

/** The tasks of a deployment, newest first, page by page. */
export const tasksOf = (
  name: Pick<TaskName, "organization" | "deployment">,
  { status, endpoint }: TaskFilter,
) =>
  infiniteQueryOptions({
    queryKey: ["tasks", name.organization, name.deployment, status, endpoint],
    queryFn: ({ pageParam, signal }) =>
      tasks.listTasks(
        {
          deployment: fullName(name),
          pageSize: MAX_PAGE,
          pageToken: pageParam,
          ...(status !== undefined && { status }),
          ...(endpoint !== undefined && { endpoint }),
        },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    // Who has gone far back does not look at the newest ones.
    refetchInterval: ({ state: { data } }) =>
      data === undefined || data.pages.length === 1 ? LIST_REFRESH_MS : false,
  });

/** The tasks of all deployments of an organization, newest first, page by page. */
export const tasksOfAll = (organization: string, filter: TaskFilter) => {
  const { status, endpoint, deployment, error } = filter;
  return infiniteQueryOptions({
    queryKey: ["tasks", organization, "all", status, endpoint, deployment, error],
    queryFn: ({ pageParam, signal }) =>
      organizationTasks.listOrganizationTasks(
        {
          organization,
          pageSize: MAX_PAGE,
          pageToken: pageParam,
          ...(status !== undefined && { statuses: [status] }),
          ...(endpoint !== undefined && { endpoint }),
          ...(deployment !== undefined && { deployments: [deployment] }),
          ...(error !== undefined && { errorContains: error }),
        },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    refetchInterval: ({ state: { data } }) =>
      data === undefined || data.pages.length === 1 ? LIST_REFRESH_MS : false,
  });
};
