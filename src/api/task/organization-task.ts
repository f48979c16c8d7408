/** OrganizationTaskService: the tasks over the deployments of an organization, newest first. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ListOrganizationTasksRequest,
  OrganizationTaskService,
  WatchTasksRequest,
  WatchTasksResponseSchema,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { type QueuedReason, type Task, TaskSchema } from "../../../gen/tessera/v1/task_pb.js";
import { seesDeployments } from "../../auth/permissions.ts";
import type { Member } from "../../server/rpc/engine/caller.ts";
import type { FoundTask, StateCounts } from "../../storage/listing.ts";
import { hasExpired } from "../../tasks/task.ts";
import { SharedReads } from "../../time/shared-reads.ts";
import { differences, Followers, type ShownById, shownById, type Telling } from "../follow.ts";
import { pageSizeOf } from "../page.ts";
import { type BulkOptions, bulkHandlers } from "./bulk.ts";
import { toQueuedReason } from "./messages.ts";
import { keyOfSearch, OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";
import { type StatsOptions, statsHandlers } from "./stats.ts";

/** Queries for one page of tasks, each of which looks at a bounded number of them. */
const MAX_QUERIES_PER_PAGE = 5;

/** How old counts in an answer may be. */
const COUNTS_TTL_MS = 2_000;

/** OrganizationTaskService over the accounts, the tasks and the queues of deployments. */
export function organizationTaskService(
  options: BulkOptions & StatsOptions,
): Partial<ServiceImpl<typeof OrganizationTaskService>> {
  const counts = new SharedReads<StateCounts>({ maxAgeMs: COUNTS_TTL_MS, now: options.now });
  return {
    ...bulkHandlers(options),
    watchTasks: watchTasks(options),
    ...statsHandlers(options),

    async listOrganizationTasks(req, ctx) {
      const reader = readerOf(req, ctx);
      const seesDeployment = seesDeployments(reader.principal, reader.organizationId);
      const { directory } = options;
      return listTasks(req, reader, options, (task) => {
        const reason = directory.whyQueued?.(task.deploymentId, task);
        return reason && toQueuedReason(reason, { seesDeployment });
      });
    },

    async countTasks(req, ctx) {
      const reader = readerOf(req, ctx);
      return counts.get(keyOfSearch(req, reader), async () => {
        const request = { ...req, pageToken: "", method: "CountTasks" };
        return (await OrganizationSearch.begin(options, reader, request)).counts();
      });
    },
  };
}

async function listTasks(
  req: ListOrganizationTasksRequest,
  reader: Member,
  ports: SearchPorts,
  reasonOf: (task: FoundTask) => QueuedReason | undefined,
) {
  const search = await OrganizationSearch.begin(ports, reader, {
    ...req,
    method: "ListOrganizationTasks",
  });
  const pageSize = pageSizeOf(req);
  const found: FoundTask[] = [];
  for (let query = 0; query < MAX_QUERIES_PER_PAGE; query++) {
    const tasks = await search.next(pageSize - found.length);
    const nowMs = ports.now();
    found.push(...tasks.filter((task) => !hasExpired(task, nowMs)));
    if (search.isOver || found.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: found.map((task) => ({
      ...search.messageOf(task),
      queuedReason: task.status === "queued" ? reasonOf(task) : undefined,
    })),
    nextPageToken: search.pageToken,
  };
}

// WatchTasks: the newest tasks of an organization, and what changes among them. The page is read
// once a second while anybody follows it, once for all who follow the same one: two queries.

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

function watchTasks(ports: SearchPorts): WatchTasks {
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
