/** Keeps a list of an organization's tasks as it is now, by the stream of its newest page. */
import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import type {
  ListOrganizationTasksResponseJson,
  OrganizationTaskService,
  WatchTasksResponseJson,
} from "../../../../gen/tessera/v1/organization_task_pb.js";
import type { TaskJson } from "../../../../gen/tessera/v1/task_pb.js";
import { watch } from "./stream.ts";
import { MAX_TASKS_PER_PAGE, requestOf, type TaskFilter, tasksOfAll } from "./tasks.ts";
import { type StreamState, useStream } from "./use-stream.ts";

type List = InfiniteData<ListOrganizationTasksResponseJson, string>;

/**
 * Follows the newest page of the list. Where only that page is loaded it is replaced, else the
 * tasks that are shown change in their places: who has gone far back does not look at the newest.
 */
export function useTaskPage(organization: string, filter: TaskFilter): StreamState {
  const queryClient = useQueryClient();
  const { queryKey } = tasksOfAll(organization, filter);
  const request = requestOf(organization, filter);
  const newest = useRef(new Map<string, TaskJson>());
  return useStream<WatchTasksResponseJson>(
    JSON.stringify(request),
    (options) => {
      newest.current = new Map();
      return watch<(typeof OrganizationTaskService)["method"]["watchTasks"]>(
        "/tessera.v1.OrganizationTaskService/WatchTasks",
        { ...request, pageSize: MAX_TASKS_PER_PAGE },
        options,
      );
    },
    ({ tasks = [], removedTaskIds = [], nextPageToken = "" }) => {
      for (const task of tasks) {
        newest.current.set(task.taskId ?? "", task);
      }
      for (const taskId of removedTaskIds) {
        newest.current.delete(taskId);
      }
      const page = { tasks: [...newest.current.values()].sort(newestFirst), nextPageToken };
      queryClient.setQueryData<List>(queryKey, (list) => list && follow(list, page, tasks));
    },
  );
}

function follow(
  list: List,
  page: ListOrganizationTasksResponseJson,
  changed: readonly TaskJson[],
): List {
  if (list.pages.length === 1) {
    return { ...list, pages: [page] };
  }
  const byId = new Map(changed.map((task) => [task.taskId, task]));
  const pages = list.pages.map((one) =>
    one.tasks?.some(({ taskId }) => byId.has(taskId))
      ? { ...one, tasks: one.tasks.map((task) => byId.get(task.taskId) ?? task) }
      : one,
  );
  return pages.some((one, index) => one !== list.pages[index]) ? { ...list, pages } : list;
}

/** Ids begin with the time of acceptance. */
function newestFirst(one: TaskJson, other: TaskJson): number {
  return (one.taskId ?? "") < (other.taskId ?? "") ? 1 : -1;
}
