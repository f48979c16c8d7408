/** ListTasks: pages of a deployment's tasks, newest first. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ListTasksRequest } from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import type { TaskListing } from "../../storage/listing.ts";
import { idBoundary, isTaskId } from "../../tasks/id.ts";
import type { Task, TaskStatus } from "../../tasks/task.ts";
import { PageTokens, pageSizeOf } from "../page.ts";
import { STATUS, toQueuedReason, toTaskMessage } from "./messages.ts";

/**
 * Queries for one page of tasks. Each looks at a bounded number of tasks, so a filter that few
 * tasks fit gives a short page at last.
 */
const MAX_QUERIES_PER_PAGE = 10;

/** Latest time that a filter of tasks takes: the last moment that an id can carry. */
const MAX_TASK_TIME_MS = 2 ** 48 - 1;

/** The words for the states of the proto file. */
export const WORDS = new Map<number, TaskStatus>(
  Object.entries(STATUS).map(([word, status]) => [status, word as TaskStatus]),
);

/** Returns one page. Rejects with REQUEST_INVALID for a token of another list. */
export async function listTasks(
  deployment: Deployment,
  req: ListTasksRequest,
  told: { readonly seesDeployment: boolean },
) {
  const { name, tasks: stored } = deployment;
  const filter = filterOf(req);
  const tokens = new PageTokens({
    method: "ListTasks",
    filter: [
      ...[name, filter.status, filter.endpoint, filter.key],
      ...[filter.createdFromMs, filter.createdBeforeMs, filter.tags?.join()],
    ],
    isEnd: isTaskId,
  });
  const pageSize = pageSizeOf(req);
  let before = req.pageToken === "" ? startOf(filter) : tokens.open(req.pageToken);
  const tasks: Task[] = [];
  for (let round = 0; round < MAX_QUERIES_PER_PAGE; round++) {
    const limit = pageSize - tasks.length;
    const page = await stored.list({ ...filter, limit, ...(before !== undefined && { before }) });
    tasks.push(...page.tasks);
    before = page.nextBefore;
    if (before === undefined || tasks.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: tasks.map((task) => ({
      ...toTaskMessage(task, name),
      ...(task.status === "queued" && {
        queuedReason: toQueuedReason(deployment.whyQueued(task), told),
      }),
    })),
    nextPageToken: tokens.after(before),
  };
}

type Filter = Omit<TaskListing, "deploymentId" | "before" | "limit">;

function filterOf(req: ListTasksRequest): Filter {
  const { status, endpoint, key, createdFrom, createdBefore, tags } = req;
  const word = WORDS.get(status);
  return {
    ...(word !== undefined && { status: word }),
    ...(endpoint !== "" && { endpoint }),
    ...(key !== "" && { key }),
    ...(createdFrom && { createdFromMs: bounded(createdFrom) }),
    ...(createdBefore && { createdBeforeMs: bounded(createdBefore) }),
    ...(tags.length > 0 && { tags: [...tags].sort() }),
  };
}

/** Clamps a time, in milliseconds since 1970, to the range of ids, in which every task was accepted; gRPC callers may send any number. */
export function bounded(time: Timestamp): number {
  return Math.min(Math.max(timestampMs(time), 0), MAX_TASK_TIME_MS);
}

/** The id to begin at: ids begin with the time, so a list of earlier tasks can skip newer ones. */
function startOf({ createdBeforeMs }: Filter): string | undefined {
  return createdBeforeMs === undefined ? undefined : idBoundary(createdBeforeMs);
}
