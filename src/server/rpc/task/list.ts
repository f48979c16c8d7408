/** ListTasks: pages of a deployment's tasks, newest first. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ListTasksRequest } from "../../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../../deployments/deployment.ts";
import type { TaskListing } from "../../../storage/storage.ts";
import { idBoundary, isTaskId } from "../../../tasks/id.ts";
import type { Task, TaskStatus } from "../../../tasks/task.ts";
import { PageTokens, pageSizeOf } from "../page.ts";
import { STATUS, toTaskMessage } from "./messages.ts";

/**
 * How often the storage is asked for one page. Each time it looks at a bounded
 * number of tasks, so a filter that few tasks fit gives a short page at last.
 */
const MAX_ROUNDS = 10;

/** The last moment that an id can carry. */
const MAX_TIME_MS = 2 ** 48 - 1;

const WORDS = new Map<number, TaskStatus>(
  Object.entries(STATUS).map(([word, status]) => [status, word as TaskStatus]),
);

/** One page. Rejects with REQUEST_INVALID for a token that is not of this list. */
export async function listTasks({ name, queue }: Deployment, req: ListTasksRequest) {
  const filter = filterOf(req);
  const tokens = new PageTokens({
    method: "ListTasks",
    filter: [name, filter.status, filter.endpoint, filter.createdFromMs, filter.createdBeforeMs],
    isEnd: isTaskId,
  });
  const pageSize = pageSizeOf(req);
  let before = req.pageToken === "" ? startOf(filter) : tokens.open(req.pageToken);
  const tasks: Task[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const limit = pageSize - tasks.length;
    const page = await queue.list({ ...filter, limit, ...(before !== undefined && { before }) });
    tasks.push(...page.tasks);
    before = page.nextBefore;
    if (before === undefined || tasks.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: tasks.map((task) => toTaskMessage(task, name)),
    nextPageToken: tokens.after(before),
  };
}

type Filter = Omit<TaskListing, "deploymentId" | "before" | "limit">;

function filterOf({ status, endpoint, createdFrom, createdBefore }: ListTasksRequest): Filter {
  const word = WORDS.get(status);
  return {
    ...(word !== undefined && { status: word }),
    ...(endpoint !== "" && { endpoint }),
    ...(createdFrom && { createdFromMs: bounded(createdFrom) }),
    ...(createdBefore && { createdBeforeMs: bounded(createdBefore) }),
  };
}

/** No task was accepted outside of what an id can carry; gRPC callers may send any number. */
function bounded(time: Timestamp): number {
  return Math.min(Math.max(timestampMs(time), 0), MAX_TIME_MS);
}

/** Ids begin with the time, so the list of earlier tasks need not begin at the newest. */
function startOf({ createdBeforeMs }: Filter): string | undefined {
  return createdBeforeMs === undefined ? undefined : idBoundary(createdBeforeMs);
}
