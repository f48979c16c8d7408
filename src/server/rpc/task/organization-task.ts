/** OrganizationTaskService: pages of tasks over the deployments of an organization, newest first. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  ListOrganizationTasksRequest,
  OrganizationTaskService,
} from "../../../../gen/tessera/v1/organization_task_pb.js";
import { deploymentUnknown, readsTasks } from "../../../auth/permissions.ts";
import { problem } from "../../../errors.ts";
import type { DeploymentRecord, Organizations } from "../../../storage/accounts/organizations.ts";
import type { TaskSearchQuery } from "../../../storage/listing.ts";
import type { Storage } from "../../../storage/storage.ts";
import { idBoundary, isTaskId } from "../../../tasks/id.ts";
import { hasExpired, type Task } from "../../../tasks/task.ts";
import { callerOf, type Member, memberIn } from "../engine/caller.ts";
import { PageTokens, pageSizeOf } from "../page.ts";
import { bounded, WORDS } from "./list.ts";
import { toTaskMessage } from "./messages.ts";

/** Deployments that are read at once. */
const MAX_DEPLOYMENTS_PER_READ = 1_000;

/** Queries for one page of tasks, each of which looks at a bounded number of them. */
const MAX_QUERIES_PER_PAGE = 5;

export interface OrganizationTaskOptions {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly tasks: Pick<Storage, "searchTasks">;
  readonly now: () => number;
}

/** OrganizationTaskService over the accounts and the tasks. */
export function organizationTaskService(
  options: OrganizationTaskOptions,
): Partial<ServiceImpl<typeof OrganizationTaskService>> {
  return {
    async listOrganizationTasks(req, ctx) {
      return listTasks(req, readerOf(req, ctx), options);
    },
  };
}

/** Throws ORGANIZATION_NOT_FOUND, and ACCESS_DENIED for a token that may not call deployments. */
function readerOf({ organization }: ListOrganizationTasksRequest, ctx: HandlerContext): Member {
  const member = memberIn(callerOf(ctx), organization);
  if (member.principal.kind === "token" && !member.principal.access.protectedEndpoint) {
    throw problem("ACCESS_DENIED", "this asks for a token with protected endpoint access");
  }
  return member;
}

async function listTasks(
  req: ListOrganizationTasksRequest,
  reader: Member,
  { accounts, tasks: storage, now }: OrganizationTaskOptions,
) {
  const filter = filterOf(req);
  const names = [...new Set(req.deployments)].sort();
  const { createdFrom, createdBefore } = req;
  const [from, end] = [boundary(createdFrom), boundary(createdBefore)];
  const tokens = new PageTokens({
    method: "ListOrganizationTasks",
    filter: [
      ...[reader.organizationId, names.join(), filter.endpoint, filter.statuses?.join()],
      ...[filter.errorContains, from, end],
    ],
    isEnd: isTaskId,
  });
  let before = req.pageToken === "" ? end : tokens.open(req.pageToken);
  const deployments = await readable(accounts, reader, names);
  const nameOf = new Map(
    deployments.map(({ deploymentId, name }) => [deploymentId, `${reader.organization}/${name}`]),
  );
  const pageSize = pageSizeOf(req);
  const found: Task[] = [];
  for (let query = 0; query < MAX_QUERIES_PER_PAGE; query++) {
    const page = await storage.searchTasks({
      ...filter,
      deploymentIds: [...nameOf.keys()],
      ...(from !== undefined && { from }),
      ...(before !== undefined && { before }),
      limit: pageSize - found.length,
    });
    const nowMs = now();
    found.push(...page.tasks.filter((task) => !hasExpired(task, nowMs)));
    before = page.nextBefore;
    if (before === undefined || found.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: found.map((task) => toTaskMessage(task, nameOf.get(task.deploymentId) ?? "")),
    nextPageToken: tokens.after(before),
  };
}

type Filter = Pick<TaskSearchQuery, "endpoint" | "statuses" | "errorContains">;

function filterOf({ endpoint, statuses, errorContains }: ListOrganizationTasksRequest): Filter {
  const words = new Set([...statuses].sort().flatMap((status) => WORDS.get(status) ?? []));
  return {
    ...(endpoint !== "" && { endpoint }),
    ...(words.size > 0 && { statuses: [...words] }),
    ...(errorContains !== "" && { errorContains }),
  };
}

/** Ids begin with the time of acceptance, so times bound them. */
function boundary(time: ListOrganizationTasksRequest["createdFrom"]): string | undefined {
  return time && idBoundary(bounded(time));
}

/**
 * The deployments that the reader may see, or those with the given names. Rejects with
 * DEPLOYMENT_NOT_FOUND for a name that is not among them.
 */
async function readable(
  accounts: OrganizationTaskOptions["accounts"],
  { organizationId, organization, principal }: Member,
  names: readonly string[],
): Promise<DeploymentRecord[]> {
  const found: DeploymentRecord[] = [];
  let after: string | undefined;
  do {
    const page = await accounts.listDeployments({
      organizationId,
      limit: MAX_DEPLOYMENTS_PER_READ,
      ...(after !== undefined && { after }),
    });
    found.push(...page.items.filter(({ deploymentId }) => readsTasks(principal, deploymentId)));
    after = page.next;
  } while (after !== undefined);
  if (names.length === 0) {
    return found;
  }
  const byName = new Map(found.map((one) => [one.name, one]));
  return names.map((name) => {
    const one = byName.get(name);
    if (one === undefined) {
      throw deploymentUnknown(principal, `${organization}/${name}`);
    }
    return one;
  });
}
