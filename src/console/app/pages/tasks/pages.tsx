/** The pages of a list of tasks that were loaded so far, or what to say instead of them. */
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { TaskTable } from "./table.tsx";

export interface TaskPagesProps {
  readonly list: {
    readonly data: { readonly pages: readonly { readonly tasks?: TaskJson[] }[] };
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    fetchNextPage(): Promise<unknown>;
  };
  readonly isFiltered: boolean;
  readonly ofSeveral?: boolean;
}

export function TaskPages({ list, isFiltered, ofSeveral = false }: TaskPagesProps) {
  const tasks = list.data.pages.flatMap((page) => page.tasks ?? []);
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
      <TaskTable tasks={tasks} ofSeveral={ofSeveral} />
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
}
