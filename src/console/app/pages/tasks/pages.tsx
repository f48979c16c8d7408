/** The pages of a list of tasks that were loaded so far, or what to say instead of them. */
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import type { TaskFilter } from "../../api/tasks.ts";
import type { StreamState } from "../../api/use-stream.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { BulkActions } from "./bulk.tsx";
import { useSelection } from "./selection.ts";
import { TaskTable } from "./table.tsx";

interface TaskPagesProps {
  readonly list: {
    readonly data: { readonly pages: readonly { readonly tasks?: TaskJson[] }[] };
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    fetchNextPage(): Promise<unknown>;
  };
  readonly isFiltered: boolean;
  /** Of the list, with its deployment. */
  readonly filter: TaskFilter;
  readonly stream: StreamState;
  readonly ofSeveral?: boolean;
}

export function TaskPages(props: TaskPagesProps) {
  const { list, isFiltered, filter, stream, ofSeveral = false } = props;
  const tasks = list.data.pages.flatMap((page) => page.tasks ?? []);
  const selection = useSelection(tasks);
  if (tasks.length === 0 && !list.hasNextPage) {
    return isFiltered ? (
      <Empty inPage title="No task is like this">
        <p>Choose something else above.</p>
      </Empty>
    ) : (
      <Empty inPage title="No tasks yet">
        <p>
          Calls that are submitted to an endpoint marked as a task are here until a day after their
          end.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <div className="task-line">
        <BulkActions selection={selection} filter={filter} />
        <StreamStatus state={stream} />
      </div>
      <TaskTable tasks={tasks} selection={selection} ofSeveral={ofSeveral} />
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
}
