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

/** How far a page may be scrolled and still show the newest tasks. */
const TOP_PX = 200;

/**
 * Follows the newest page of the list. Where only that page is loaded it is replaced, else the
 * tasks that are shown change in their places, and new ones come before them while the page is at
 * its top: who has gone far back does not look at the newest.
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
      queryClient.setQueryData<List>(
        queryKey,
        (list) => list && follow(list, page, removedTaskIds),
      );
    },
  );
}

function follow(
  list: List,
  page: ListOrganizationTasksResponseJson,
  removedTaskIds: readonly string[],
): List {
  const newest = page.tasks ?? [];
  const loaded = new Set(list.pages.flatMap((one) => one.tasks ?? []).map(({ taskId }) => taskId));
  const added = newest.filter(({ taskId }) => !loaded.has(taskId));
  const isAtTop = scrollY < TOP_PX;
  // Without a task in common, others may be between the page and what is loaded.
  if (list.pages.length === 1 || (isAtTop && added.length === newest.length)) {
    return { pages: [page], pageParams: list.pageParams.slice(0, 1) };
  }
  // All of them, not those of this message alone: a page that arrived meanwhile may be older.
  const byId = new Map(newest.map((task) => [task.taskId, task]));
  const last = newest.at(-1)?.taskId ?? "";
  // What newer ones have pushed off the page is still in the list.
  const gone = new Set(removedTaskIds.filter((taskId) => taskId > last));
  const changed = (one: TaskJson) => byId.has(one.taskId) || gone.has(one.taskId ?? "");
  const pages = list.pages.map((one, index) => {
    const before = index === 0 && isAtTop ? added : [];
    return before.length > 0 || one.tasks?.some(changed)
      ? {
          ...one,
          tasks: [
            ...before,
            ...(one.tasks ?? [])
              .filter(({ taskId = "" }) => !gone.has(taskId))
              .map((task) => byId.get(task.taskId) ?? task),
          ],
        }
      : one;
  });
  return pages.some((one, index) => one !== list.pages[index]) ? { ...list, pages } : list;
}

/** Ids begin with the time of acceptance. */
function newestFirst(one: TaskJson, other: TaskJson): number {
  return (one.taskId ?? "") < (other.taskId ?? "") ? 1 : -1;
}
