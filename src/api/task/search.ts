/** Searches of an organization's tasks: who may, in which deployments, and from page to page. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ListOrganizationTasksRequest } from "../../../gen/tessera/v1/organization_task_pb.js";
import { deploymentUnknown, readsTasks } from "../../auth/permissions.ts";
import { problem } from "../../errors.ts";
import { callerOf, type Member, memberIn } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { TaskSearchQuery } from "../../storage/listing.ts";
import type { Storage } from "../../storage/storage.ts";
import { idBoundary, isTaskId } from "../../tasks/id.ts";
import type { Task } from "../../tasks/task.ts";
import { deploymentsOf } from "../deployments-of.ts";
import { PageTokens } from "../page.ts";
import { bounded, WORDS } from "./list.ts";

export interface SearchPorts {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly tasks: Pick<Storage, "searchTasks">;
  readonly now: () => number;
}

/** The filter of a request, and the page that it begins with. */
interface SearchRequest
  extends Pick<
    ListOrganizationTasksRequest,
    "deployments" | "endpoint" | "statuses" | "errorContains" | "createdFrom" | "createdBefore"
  > {
  readonly pageToken: string;
  /** The method, whose page tokens those of others are not. */
  readonly method: string;
}

/**
 * Who reads or changes the tasks of an organization. Throws ORGANIZATION_NOT_FOUND, and
 * ACCESS_DENIED for a token that may not call deployments.
 */
export function readerOf(
  { organization }: { readonly organization: string },
  ctx: HandlerContext,
): Member {
  const member = memberIn(callerOf(ctx), organization);
  if (member.principal.kind === "token" && !member.principal.access.protectedEndpoint) {
    throw problem("ACCESS_DENIED", "this asks for a token with protected endpoint access");
  }
  return member;
}

/** A search under way, newest tasks first. */
export class OrganizationSearch {
  readonly #tasks: SearchPorts["tasks"];
  readonly #names: ReadonlyMap<string, string>;
  readonly #query: Omit<TaskSearchQuery, "before" | "limit">;
  readonly #tokens: PageTokens;
  #before: string | undefined;
  #isOver = false;

  /**
   * Rejects with DEPLOYMENT_NOT_FOUND for a deployment that the reader may not see, and with
   * REQUEST_INVALID for a page token of another search.
   */
  static async begin(
    { accounts, tasks }: SearchPorts,
    reader: Member,
    request: SearchRequest,
  ): Promise<OrganizationSearch> {
    const filter = filterOf(request);
    const names = [...new Set(request.deployments)].sort();
    const [from, end] = [boundary(request.createdFrom), boundary(request.createdBefore)];
    const tokens = new PageTokens({
      method: request.method,
      filter: [
        ...[reader.organizationId, names.join(), filter.endpoint, filter.statuses?.join()],
        ...[filter.errorContains, from, end],
      ],
      isEnd: isTaskId,
    });
    const before = request.pageToken === "" ? end : tokens.open(request.pageToken);
    const deployments = await readable(accounts, reader, names);
    return new OrganizationSearch({
      tasks,
      tokens,
      before,
      names: new Map(
        deployments.map((one) => [one.deploymentId, `${reader.organization}/${one.name}`]),
      ),
      query: {
        ...filter,
        deploymentIds: deployments.map(({ deploymentId }) => deploymentId),
        ...(from !== undefined && { from }),
      },
    });
  }

  private constructor(parts: {
    readonly tasks: SearchPorts["tasks"];
    readonly names: ReadonlyMap<string, string>;
    readonly query: Omit<TaskSearchQuery, "before" | "limit">;
    readonly tokens: PageTokens;
    readonly before: string | undefined;
  }) {
    this.#tasks = parts.tasks;
    this.#names = parts.names;
    this.#query = parts.query;
    this.#tokens = parts.tokens;
    this.#before = parts.before;
  }

  /**
   * The next tasks, `limit` at most. There may be fewer, even none, although more follow: it looks
   * at a bounded number.
   */
  async next(limit: number): Promise<readonly Task[]> {
    const before = this.#before;
    const page = await this.#tasks.searchTasks({
      ...this.#query,
      ...(before !== undefined && { before }),
      limit,
    });
    this.#before = page.nextBefore;
    this.#isOver = page.nextBefore === undefined;
    return page.tasks;
  }

  /** True when no task is left. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Where the next request goes on; empty when the search is over. */
  get pageToken(): string {
    return this.#tokens.after(this.#isOver ? undefined : this.#before);
  }

  /** The deployment of a task that was found, as `organization/name`. */
  deploymentOf({ deploymentId }: Task): string {
    return this.#names.get(deploymentId) ?? "";
  }
}

type Filter = Pick<TaskSearchQuery, "endpoint" | "statuses" | "errorContains">;

function filterOf({ endpoint, statuses, errorContains }: SearchRequest): Filter {
  const words = new Set([...statuses].sort().flatMap((status) => WORDS.get(status) ?? []));
  return {
    ...(endpoint !== "" && { endpoint }),
    ...(words.size > 0 && { statuses: [...words] }),
    ...(errorContains !== "" && { errorContains }),
  };
}

/** Ids begin with the time of acceptance, so times bound them. */
function boundary(time: SearchRequest["createdFrom"]): string | undefined {
  return time && idBoundary(bounded(time));
}

async function readable(
  accounts: SearchPorts["accounts"],
  reader: Member,
  names: readonly string[],
): Promise<readonly DeploymentRecord[]> {
  return chosen(await deploymentsOf(accounts, reader.organizationId), reader, names);
}

/**
 * The deployments that the reader may see, or those with the given names. Throws
 * DEPLOYMENT_NOT_FOUND for a name that is not among them.
 */
export function chosen(
  deployments: readonly DeploymentRecord[],
  { organization, principal }: Member,
  names: readonly string[],
): readonly DeploymentRecord[] {
  const visible = deployments.filter(({ deploymentId }) => readsTasks(principal, deploymentId));
  if (names.length === 0) {
    return visible;
  }
  const byName = new Map(visible.map((one) => [one.name, one]));
  return names.map((name) => {
    const one = byName.get(name);
    if (one === undefined) {
      throw deploymentUnknown(principal, `${organization}/${name}`);
    }
    return one;
  });
}
