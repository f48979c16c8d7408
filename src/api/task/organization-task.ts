/** OrganizationTaskService: the tasks over the deployments of an organization, newest first. */
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ListOrganizationTasksRequest,
  OrganizationTaskService,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import type { Member } from "../../server/rpc/engine/caller.ts";
import { hasExpired, type Task } from "../../tasks/task.ts";
import { pageSizeOf } from "../page.ts";
import { type BulkOptions, bulkHandlers } from "./bulk.ts";
import { toTaskMessage } from "./messages.ts";
import { OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";
import { type StatsOptions, statsHandlers } from "./stats.ts";
import { watchTasks } from "./watch.ts";

/** Queries for one page of tasks, each of which looks at a bounded number of them. */
const MAX_QUERIES_PER_PAGE = 5;

/** OrganizationTaskService over the accounts, the tasks and the queues of deployments. */
export function organizationTaskService(
  options: BulkOptions & StatsOptions,
): Partial<ServiceImpl<typeof OrganizationTaskService>> {
  return {
    ...bulkHandlers(options),
    watchTasks: watchTasks(options),
    ...statsHandlers(options),

    async listOrganizationTasks(req, ctx) {
      return listTasks(req, readerOf(req, ctx), options);
    },
  };
}

async function listTasks(req: ListOrganizationTasksRequest, reader: Member, ports: SearchPorts) {
  const search = await OrganizationSearch.begin(ports, reader, {
    ...req,
    method: "ListOrganizationTasks",
  });
  const pageSize = pageSizeOf(req);
  const found: Task[] = [];
  for (let query = 0; query < MAX_QUERIES_PER_PAGE; query++) {
    const tasks = await search.next(pageSize - found.length);
    const nowMs = ports.now();
    found.push(...tasks.filter((task) => !hasExpired(task, nowMs)));
    if (search.isOver || found.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: found.map((task) => toTaskMessage(task, search.deploymentOf(task))),
    nextPageToken: search.pageToken,
  };
}
