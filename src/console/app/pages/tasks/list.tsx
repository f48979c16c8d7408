/** A list of tasks that is followed and goes on as it is scrolled, or what to say instead of it. */
import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { type TaskFilter, tasksOfAll } from "../../api/tasks.ts";
import { useTaskPage } from "../../api/use-task-page.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { SelectionActions } from "./bulk.tsx";
import { useSelection } from "./selection.ts";
import { TaskTable } from "./table.tsx";

/** Of longer lists the end is told. */
const MIN_TASKS_WITH_END = 20;

interface TaskListProps {
  /** Its deployment is in it. */
  readonly filter: TaskFilter;
  readonly isFiltered: boolean;
  /** They are of several deployments, which the table names. */
  readonly ofSeveral?: boolean;
  /** Their deployment has one task endpoint. */
  readonly ofOneEndpoint?: boolean;
}

export function TaskList(props: TaskListProps) {
  const { filter, isFiltered, ofSeveral = false, ofOneEndpoint = false } = props;
  const organization = useOrganization();
  const list = useSuspenseInfiniteQuery(tasksOfAll(organization, filter));
  const stream = useTaskPage(organization, filter);
  const tasks = list.data.pages.flatMap((page) => page.tasks ?? []);
  const selection = useSelection(tasks);
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isFetchNextPageError } = list;
  if (tasks.length === 0 && !hasNextPage) {
    return isFiltered ? (
      <Empty inPage title="No tasks match">
        <p>Change the filters above to see others.</p>
      </Empty>
    ) : (
      <Empty inPage title="No tasks yet">
        <p>
          Calls of task endpoints are listed here, until a day after they end unless their endpoint
          says otherwise.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <StreamStatus state={stream} />
      <TaskTable
        tasks={tasks}
        selection={selection}
        ofSeveral={ofSeveral}
        ofOneEndpoint={ofOneEndpoint}
        onEnd={() => {
          if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) {
            void fetchNextPage();
          }
        }}
      />
      <p className="list-end" role="status">
        {isFetchingNextPage && (tasks.length === 0 ? "Looking at older tasks…" : "Loading more…")}
        {isFetchNextPageError && (
          <>
            More could not be loaded: {messageOf(list.error)}{" "}
            <Button onClick={() => void fetchNextPage()}>Try again</Button>
          </>
        )}
        {!hasNextPage && tasks.length > MIN_TASKS_WITH_END && `All ${tasks.length} tasks are shown`}
      </p>
      <SelectionActions selection={selection} />
    </>
  );
}
