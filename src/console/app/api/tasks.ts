/** Reads of tasks, shared by pages. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { TaskJson, TaskStatusJson } from "../../../../gen/tessera/v1/task_pb.js";
import { organizationTasks, tasks } from "./clients.ts";

/** Tasks that one call lists. */
export const MAX_TASKS_PER_PAGE = 100;

/** How often a task is read again that has not ended: its events tell the rest. */
const REFRESH_MS = 5_000;

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

/** Text of an error that is searched for. */
const MAX_ERROR_CHARACTERS = 200;
const HOUR_MS = 3_600_000;

/** The beginning of the message that a task failed with, by which others like it are found. */
export const errorTextOf = ({ failure }: TaskJson): string =>
  (failure?.message ?? "").slice(0, MAX_ERROR_CHARACTERS);

/** How many other tasks of the endpoint failed with the same message in the last hour, of a page. */
export const failuresLike = ({ organization, deployment, taskId }: TaskName, task: TaskJson) =>
  queryOptions({
    queryKey: ["failures", organization, deployment, taskId, errorTextOf(task)],
    queryFn: async ({ signal }) => {
      const { tasks = [] } = await organizationTasks.listOrganizationTasks(
        {
          organization,
          deployments: [deployment],
          endpoint: task.endpoint ?? "",
          statuses: ["TASK_STATUS_FAILURE"],
          createdFrom: new Date(Date.now() - HOUR_MS).toISOString(),
          errorContains: errorTextOf(task),
          pageSize: MAX_TASKS_PER_PAGE,
        },
        { signal },
      );
      return tasks.filter((one) => one.taskId !== taskId).length;
    },
    enabled: errorTextOf(task) !== "",
  });

/** Retries of a task that are told apart; of more, the newest. */
const MAX_RETRIES_SHOWN = 3;

/** The tasks that retry one which has ended, newest first. */
export const retriesOf = ({ organization, deployment, taskId }: TaskName) =>
  queryOptions({
    queryKey: ["retries", organization, deployment, taskId],
    queryFn: async ({ signal }) => {
      const { tasks = [] } = await organizationTasks.listOrganizationTasks(
        { organization, retryOf: taskId, pageSize: MAX_RETRIES_SHOWN },
        { signal },
      );
      return tasks;
    },
  });

/** The organization and the filter, as requests have them. */
export const requestOf = (
  organization: string,
  { status, endpoint, deployment, error }: TaskFilter,
) => ({
  organization,
  ...(status !== undefined && { statuses: [status] }),
  ...(endpoint !== undefined && { endpoint }),
  ...(deployment !== undefined && { deployments: [deployment] }),
  ...(error !== undefined && { errorContains: error }),
});

/** The tasks of an organization, newest first, page by page; `useTaskPage` keeps them as they are. */
export const tasksOfAll = (organization: string, filter: TaskFilter) => {
  const request = requestOf(organization, filter);
  return infiniteQueryOptions({
    queryKey: ["tasks", organization, request],
    queryFn: ({ pageParam, signal }) =>
      organizationTasks.listOrganizationTasks(
        { ...request, pageSize: MAX_TASKS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
};
