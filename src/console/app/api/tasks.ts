/** Reads of tasks, shared by pages. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { TaskJson, TaskStatusJson } from "../../../../gen/tessera/v1/task_pb.js";
import { organizationTasks, tasks } from "./clients.ts";
import { PAGES } from "./pages.ts";

/** Tasks that one call lists. */
export const MAX_TASKS_PER_PAGE = 100;

/** Tasks of each call that goes on where a list was scrolled to. */
const MAX_FURTHER_TASKS = 1_000;

/** How often the tasks of each state are counted again. */
const COUNT_INTERVAL_MS = 3_000;

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
  /** Text of its id, endpoint, arguments or error. */
  readonly text?: string | undefined;
  /** Whose tasks. */
  readonly key?: string | undefined;
  /** It has all of these tags. */
  readonly tags?: readonly string[] | undefined;
  /** Of queued tasks those with a time to come, or those without. */
  readonly scheduled?: boolean | undefined;
  /** Accepted at this time or later. */
  readonly createdFrom?: string | undefined;
  /** Accepted before this time. */
  readonly createdBefore?: string | undefined;
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

/** How long a list shows why a task is queued before it asks again. */
const REASON_FRESH_MS = 5_000;

/** One task of a list that somebody points at, with why it is queued. */
export const queuedTaskOf = (name: TaskName) =>
  queryOptions({ ...taskOf(name), refetchInterval: false, staleTime: REASON_FRESH_MS });

/** The newest task of a deployment that is queued and could start; null without any. */
export const newestQueuedOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["newest-queued", organization, deployment],
    queryFn: async ({ signal }) => {
      const { tasks = [] } = await organizationTasks.listOrganizationTasks(
        {
          organization,
          deployments: [deployment],
          statuses: ["TASK_STATUS_QUEUED"],
          scheduled: false,
          pageSize: 1,
        },
        { signal },
      );
      return tasks[0] ?? null;
    },
    refetchInterval: REFRESH_MS,
  });

/** How often the newest failures are asked for again. */
const FAILURES_REFRESH_MS = 30_000;

/** The newest tasks of an organization, or of one of its deployments, that failed in the last hour, of a page. */
export const newestFailuresOf = (organization: string, deployment?: string) =>
  queryOptions({
    queryKey: ["newest-failures", organization, deployment],
    queryFn: async ({ signal }) => {
      const { tasks = [] } = await organizationTasks.listOrganizationTasks(
        {
          organization,
          ...(deployment !== undefined && { deployments: [deployment] }),
          statuses: ["TASK_STATUS_FAILURE"],
          createdFrom: new Date(Date.now() - HOUR_MS).toISOString(),
          pageSize: MAX_TASKS_PER_PAGE,
        },
        { signal },
      );
      return tasks;
    },
    refetchInterval: FAILURES_REFRESH_MS,
  });

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
  { status, deployment, error, tags, ...rest }: TaskFilter,
) => ({
  ...rest,
  organization,
  ...(status !== undefined && { statuses: [status] }),
  ...(deployment !== undefined && { deployments: [deployment] }),
  ...(error !== undefined && { errorContains: error }),
  ...(tags !== undefined && { tags: [...tags] }),
});

/** The tasks of an organization, newest first, page by page; `useTaskPage` keeps them as they are. */
export const tasksOfAll = (organization: string, filter: TaskFilter) => {
  const request = requestOf(organization, filter);
  return infiniteQueryOptions({
    queryKey: ["tasks", organization, request],
    queryFn: ({ pageParam, signal }) =>
      organizationTasks.listOrganizationTasks(
        {
          ...request,
          pageSize: pageParam === "" ? MAX_TASKS_PER_PAGE : MAX_FURTHER_TASKS,
          pageToken: pageParam,
        },
        { signal },
      ),
    ...PAGES,
  });
};

/** How many of the tasks are in each state, whatever state the filter has. */
export const countsOf = (organization: string, filter: TaskFilter) => {
  const { status: _status, scheduled: _scheduled, ...others } = filter;
  const request = requestOf(organization, others);
  return queryOptions({
    queryKey: ["task-counts", organization, request],
    queryFn: ({ signal }) => organizationTasks.countTasks(request, { signal }),
    refetchInterval: COUNT_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
};

/** Newer tasks with this text in their id, of all deployments. */
export const tasksHaving = (organization: string, text: string) =>
  queryOptions({
    queryKey: ["tasks-having", organization, text],
    queryFn: async ({ signal }) => {
      const request = { organization, text, pageSize: MAX_TASKS_PER_PAGE };
      const { tasks: found = [] } = await organizationTasks.listOrganizationTasks(request, {
        signal,
      });
      return found.filter(({ taskId = "" }) => taskId.includes(text));
    },
    placeholderData: keepPreviousData,
  });
