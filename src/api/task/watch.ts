/**
 * WatchTasks: the newest tasks of an organization, and what changes among them. The page is read
 * once a second while anybody follows it, once for all who follow the same one: two queries.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  OrganizationTaskService,
  WatchTasksRequest,
  WatchTasksResponseSchema,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { type Task, TaskSchema } from "../../../gen/tessera/v1/task_pb.js";
import type { Member } from "../../server/rpc/engine/caller.ts";
import { hasExpired } from "../../tasks/task.ts";
import { differences, Followers, type ShownById, shownById, type Telling } from "../follow.ts";
import { pageSizeOf } from "../page.ts";
import { keyOfSearch, OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";

/** Tasks on a page that is followed. */
const MAX_FOLLOWED_TASKS = 200;

type WatchTasks = ServiceImpl<typeof OrganizationTaskService>["watchTasks"];

interface TaskPage {
  readonly tasks: ShownById<Task>;
  readonly nextPageToken: string;
}

const TELLING: Telling<TaskPage, MessageInitShape<typeof WatchTasksResponseSchema>> = {
  changeOf(sent, { tasks, nextPageToken }) {
    const { changed, removedIds } = differences(sent?.tasks, tasks);
    const isSame = changed.length === 0 && removedIds.length === 0;
    return isSame && sent?.nextPageToken === nextPageToken
      ? undefined
      : { tasks: changed, removedTaskIds: removedIds, nextPageToken };
  },
  unchanged: ({ nextPageToken }) => ({ nextPageToken }),
};

export function watchTasks(ports: SearchPorts): WatchTasks {
  const followers = new Followers<TaskPage>("tasks");
  return async function* (req, ctx) {
    const reader = readerOf(req, ctx);
    const read = (before?: TaskPage) => readPage(req, reader, { ...ports, before });
    const forMs = req.followFor && durationMs(req.followFor);
    const { signal } = ctx;
    const { organizationId } = reader;
    yield* followers.follow(
      {
        organizationId,
        key: `${keyOfSearch(req, reader)} ${pageSizeOf(req)}`,
        read,
        forMs,
        signal,
      },
      TELLING,
    );
  };
}

async function readPage(
  req: WatchTasksRequest,
  reader: Member,
  { before, ...ports }: SearchPorts & { readonly before: TaskPage | undefined },
): Promise<TaskPage> {
  // Its token is one of the list, which shows what follows.
  const method = "ListOrganizationTasks";
  const search = await OrganizationSearch.begin(ports, reader, { ...req, pageToken: "", method });
  const found = await search.next(Math.min(pageSizeOf(req), MAX_FOLLOWED_TASKS));
  const nowMs = ports.now();
  const messages = found
    .filter((task) => !hasExpired(task, nowMs))
    .map((task) => [task.taskId, search.messageOf(task)] as const);
  return {
    tasks: shownById(TaskSchema, messages, before?.tasks),
    nextPageToken: search.pageToken,
  };
}
