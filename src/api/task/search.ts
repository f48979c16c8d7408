/** Searches of an organization's tasks: who may, in which deployments, and from page to page. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ListOrganizationTasksRequest } from "../../../gen/tessera/v1/organization_task_pb.js";
import type { Task as TaskMessage } from "../../../gen/tessera/v1/task_pb.js";
import { deploymentUnknown, readsTasks } from "../../auth/permissions.ts";
import { problem } from "../../errors.ts";
import { callerOf, type Member, memberIn } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { FoundTask, StateCounts, TaskSearchQuery } from "../../storage/listing.ts";
import type { Storage, TaskKey } from "../../storage/storage.ts";
import { idBoundary, isTaskId } from "../../tasks/id.ts";
import { deploymentsOf } from "../deployments-of.ts";
import { PageTokens } from "../page.ts";
import { bounded, WORDS } from "./list.ts";
import { toTaskMessage } from "./messages.ts";

export interface SearchPorts {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly tasks: Pick<Storage, "searchTasks" | "searchKeys" | "countStates">;
  readonly now: () => number;
}

/** The filter of a request, and the page that it begins with. */
interface SearchRequest
  extends Pick<
    ListOrganizationTasksRequest,
    | "deployments"
    | "endpoint"
    | "errorContains"
    | "createdFrom"
    | "createdBefore"
    | "text"
    | "key"
    | "tags"
  > {
  readonly statuses?: ListOrganizationTasksRequest["statuses"];
  readonly scheduled?: boolean | undefined;
  readonly retryOf?: string;
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
  readonly #now: () => number;
  #before: string | undefined;
  #isOver = false;

  /**
   * Rejects with DEPLOYMENT_NOT_FOUND for a deployment that the reader may not see, and with
   * REQUEST_INVALID for a page token of another search.
   */
  static async begin(
    { accounts, tasks, now }: SearchPorts,
    reader: Member,
    request: SearchRequest,
  ): Promise<OrganizationSearch> {
    const filter = filterOf(request, now());
    const names = [...new Set(request.deployments)].sort();
    const [from, end] = [boundary(request.createdFrom), boundary(request.createdBefore)];
    const tokens = new PageTokens({
      method: request.method,
      filter: [
        ...[reader.organizationId, names.join(), filter.endpoint, filter.statuses?.join()],
        ...[filter.errorContains, from, end, filter.text, filter.retryOf, filter.tags?.join()],
        ...[request.scheduled === undefined ? undefined : String(request.scheduled), filter.key],
      ],
      isEnd: isTaskId,
    });
    const start = request.pageToken === "" ? end : tokens.open(request.pageToken);
    const deployments = await readable(accounts, reader, names);
    const deploymentIds = deployments.map(({ deploymentId }) => deploymentId);
    const { text = "" } = filter;
    const own = ownId(text, { from, end });
    const isFound =
      own !== undefined &&
      (await tasks.searchTasks({ deploymentIds, ...own, limit: 1 })).tasks.length > 0;
    const { text: _found, ...others } = filter;
    return new OrganizationSearch({
      tasks,
      tokens,
      now,
      before: isFound && request.pageToken === "" ? own.before : start,
      names: new Map(
        deployments.map((one) => [one.deploymentId, `${reader.organization}/${one.name}`]),
      ),
      query: {
        ...(isFound ? others : filter),
        deploymentIds,
        ...(isFound ? { from: own.from } : from !== undefined && { from }),
      },
    });
  }

  private constructor(parts: {
    readonly tasks: SearchPorts["tasks"];
    readonly names: ReadonlyMap<string, string>;
    readonly query: Omit<TaskSearchQuery, "before" | "limit">;
    readonly tokens: PageTokens;
    readonly now: () => number;
    readonly before: string | undefined;
  }) {
    this.#tasks = parts.tasks;
    this.#names = parts.names;
    this.#query = parts.query;
    this.#tokens = parts.tokens;
    this.#now = parts.now;
    this.#before = parts.before;
  }

  /**
   * The next tasks, `limit` at most. There may be fewer, even none, although more follow: it looks
   * at a bounded number.
   */
  async next(limit: number): Promise<readonly FoundTask[]> {
    return this.#turned(await this.#tasks.searchTasks(this.#page(limit))).tasks;
  }

  /** The keys alone of the next tasks, as `next` finds them. */
  async nextKeys(limit: number): Promise<readonly TaskKey[]> {
    return this.#turned(await this.#tasks.searchKeys(this.#page(limit))).keys;
  }

  #page(limit: number): TaskSearchQuery {
    const before = this.#before;
    return { ...this.#query, ...(before !== undefined && { before }), limit };
  }

  /** A page was read: the next one follows it. */
  #turned<Page extends { readonly nextBefore: string | undefined }>(page: Page): Page {
    this.#before = page.nextBefore;
    this.#isOver = page.nextBefore === undefined;
    return page;
  }

  /** How many tasks are in each state, from where the search is, as far as they are looked at. */
  counts(): Promise<StateCounts> {
    const { statuses: _all, waiting: _any, retryOf: _none, ...query } = this.#query;
    return this.#tasks.countStates({
      ...query,
      ...(this.#before !== undefined && { before: this.#before }),
      nowMs: this.#now(),
    });
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
  deploymentOf({ deploymentId }: Pick<TaskKey, "deploymentId">): string {
    return this.#names.get(deploymentId) ?? "";
  }

  /** A task that was found, as lists have it. */
  messageOf(task: FoundTask): TaskMessage {
    return {
      ...toTaskMessage(task, this.deploymentOf(task)),
      argumentsPreview: task.argumentsPreview.toWellFormed(),
    };
  }
}

/** Between which ids the task stands whose id the text is; undefined for other text. */
function ownId(
  text: string,
  { from = "", end = "~" }: { readonly from: string | undefined; readonly end: string | undefined },
): { readonly from: string; readonly before: string } | undefined {
  return isTaskId(text) && text >= from && text < end
    ? { from: text, before: `${text}~` }
    : undefined;
}

/** The same for callers who see the same tasks: all members, and each token for itself. */
export function keyOfSearch(
  {
    deployments,
    createdFrom,
    createdBefore,
    ...request
  }: Omit<SearchRequest, "pageToken" | "method">,
  { organizationId, principal }: Member,
): string {
  const who = principal.kind === "token" ? principal.tokenId : "";
  const times = [createdFrom, createdBefore].map((time) => time && `${time.seconds}.${time.nanos}`);
  const { endpoint, statuses, errorContains, text, scheduled, retryOf, key, tags } = request;
  return JSON.stringify([
    ...[organizationId, who, deployments, endpoint, statuses, times, errorContains],
    ...[text, scheduled, retryOf, key, tags],
  ]);
}

type Filter = Omit<TaskSearchQuery, "deploymentIds" | "before" | "from" | "limit">;

function filterOf(request: SearchRequest, nowMs: number): Filter {
  const {
    endpoint,
    statuses = [],
    errorContains,
    text,
    retryOf = "",
    scheduled,
    key,
    tags,
  } = request;
  const words = new Set([...statuses].sort().flatMap((status) => WORDS.get(status) ?? []));
  return {
    ...(endpoint !== "" && { endpoint }),
    ...(words.size > 0 && { statuses: [...words] }),
    ...(errorContains !== "" && { errorContains }),
    ...(text !== "" && { text }),
    ...(key !== "" && { key }),
    ...(retryOf !== "" && { retryOf }),
    ...(tags.length > 0 && { tags: [...tags].sort() }),
    ...(scheduled !== undefined && { waiting: { scheduled, nowMs } }),
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
