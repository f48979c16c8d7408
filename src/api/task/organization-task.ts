/** OrganizationTaskService: the tasks over the deployments of an organization, newest first. */
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ListOrganizationTasksRequest,
  OrganizationTaskService,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import type { QueuedReason } from "../../../gen/tessera/v1/task_pb.js";
import { seesDeployments } from "../../auth/permissions.ts";
import type { Member } from "../../server/rpc/engine/caller.ts";
import type { FoundTask, StateCounts } from "../../storage/listing.ts";
import { hasExpired } from "../../tasks/task.ts";
import { SharedReads } from "../../time/shared-reads.ts";
import { pageSizeOf } from "../page.ts";
import { type BulkOptions, bulkHandlers } from "./bulk.ts";
import { toQueuedReason } from "./messages.ts";
import { keyOfSearch, OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";
import { type StatsOptions, statsHandlers } from "./stats.ts";
import { watchTasks } from "./watch.ts";

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
