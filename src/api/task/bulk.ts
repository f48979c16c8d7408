/**
 * CancelTasks, RetryTasks and DeleteTasks: what CancelTask, RetryTask and DeleteTask do to one task,
 * for all that a filter chooses. A call works on a bounded number of tasks for a bounded time, and
 * says where to go on.
 */
import { isFieldSet } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Access } from "../../../gen/tessera/v1/access_pb.js";
import {
  type CancelTasksRequest,
  type DeleteTasksRequest,
  type OrganizationTaskService,
  type RetryTasksRequest,
  type TaskFilter,
  TaskFilterSchema,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { authorize } from "../../auth/permissions.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import type { Directory } from "../../deployments/directory.ts";
import { type Problem, problem, type Reason, toProblem } from "../../errors.ts";
import {
  deed,
  hostOf,
  type Member,
  originOf,
  type Sources,
} from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { TaskKey } from "../../storage/storage.ts";
import { WORDS } from "./list.ts";
import { OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";
import { digestOfRetry } from "./submit.ts";

/** Tasks that are cancelled at once. Those that run may take some seconds. */
export const MAX_CANCELS_AT_ONCE = 100;
/** Tasks that are retried at once: each holds its arguments meanwhile. */
const MAX_RETRIES_AT_ONCE = 16;
/** Tasks that are deleted at once, in one transaction: some milliseconds of the database. */
export const MAX_DELETIONS_AT_ONCE = 250;
/** Tasks that are counted at once. */
const MAX_COUNTED_AT_ONCE = 1_000;
/** Searches of one call, each of which looks at a bounded number of tasks. */
const MAX_SEARCHES_PER_CALL = 20;
/** After this time a call begins no further search. */
const BULK_BUDGET_MS = 10_000;

/** Faults of the node or of its database end the whole call; others skip a task. */
const FATAL: ReadonlySet<Reason> = new Set([
  "STORAGE_UNAVAILABLE",
  "SHUTTING_DOWN",
  "INTERNAL",
  "CALLER_GONE",
]);

const LIVE = [TaskStatus.QUEUED, TaskStatus.RUNNING];
const ENDED = [TaskStatus.SUCCESS, TaskStatus.FAILURE, TaskStatus.CANCELLED];

export interface BulkOptions extends SearchPorts, Pick<Sources, "newId"> {
  readonly accounts: SearchPorts["accounts"] & Pick<Organizations, "recordAuditEvent">;
  readonly directory: Pick<Directory, "find" | "whyQueued">;
}

/** What is done to the tasks that are found. */
interface Work {
  readonly method: string;
  readonly atOnce: number;
  /** Those that are chosen when the filter names none. */
  readonly statuses: readonly TaskStatus[];
  /** Changes tasks of one deployment. Rejects where none can be changed. */
  change(tasks: readonly TaskKey[], deployment: Deployment): Promise<readonly Changing[]>;
  /** Called when the call ends, also by a fault, if it has changed tasks. Default: nothing is recorded. */
  readonly record?: (changed: number, by: Member) => Promise<void>;
}

/** Why a task was not changed; undefined: it was. */
type Changing = Problem | undefined;

/** Work on each task by itself. */
function each(
  change: (task: TaskKey, deployment: Deployment) => Promise<unknown>,
): Pick<Work, "change"> {
  return {
    change: (tasks, deployment) =>
      Promise.all(tasks.map((task) => faultOf(change(task, deployment)))),
  };
}

function faultOf(changing: Promise<unknown>): Promise<Changing> {
  return changing.then(
    () => undefined,
    (err: unknown) => toProblem(err),
  );
}

type BulkRequest = Pick<CancelTasksRequest, "organization" | "filter" | "dryRun" | "pageToken">;

export function bulkHandlers(
  options: BulkOptions,
): Pick<ServiceImpl<typeof OrganizationTaskService>, "cancelTasks" | "retryTasks" | "deleteTasks"> {
  return {
    async cancelTasks(req, ctx) {
      return changeTasks(req, ctx, options, cancelling(req, ctx));
    },

    async retryTasks(req, ctx) {
      return changeTasks(req, ctx, options, retrying(req, ctx));
    },

    async deleteTasks(req, ctx) {
      return changeTasks(req, ctx, options, {
        ...deleting(req, ctx),
        record: (changed, { organizationId, organization, by }) =>
          options.accounts.recordAuditEvent({
            ...deed(by, options),
            ...{ organizationId, action: "task.delete_all" },
            ...{ subjectId: organizationId, subject: organization },
            details: { tasks: String(changed), ...shownFilter(req.filter) },
          }),
      });
    },
  };
}

function cancelling({ filter, abort }: CancelTasksRequest, { signal }: HandlerContext): Work {
  const { statuses = [], errorContains = "" } = filter ?? {};
  if (statuses.some((status) => !LIVE.includes(status))) {
    throw invalid("statuses", "only queued and running tasks can be cancelled");
  }
  if (errorContains !== "") {
    throw invalid("error_contains", "chooses failed tasks, which cannot be cancelled");
  }
  return {
    method: "CancelTasks",
    atOnce: MAX_CANCELS_AT_ONCE,
    statuses: abort ? LIVE : [TaskStatus.QUEUED],
    ...each(({ taskId }, { queue }) => queue.cancel({ taskId, signal }, abort)),
  };
}

function retrying({ filter, idempotencyKey }: RetryTasksRequest, ctx: HandlerContext): Work {
  const { statuses = [] } = filter ?? {};
  if (statuses.some((status) => LIVE.includes(status))) {
    throw invalid("statuses", "only tasks that have ended can be retried");
  }
  const { signal } = ctx;
  const origin = originOf(ctx);
  return {
    method: "RetryTasks",
    atOnce: MAX_RETRIES_AT_ONCE,
    statuses: [TaskStatus.FAILURE],
    ...each(async ({ taskId }, deployment) => {
      const refusal = deployment.admit("task", origin.tokenId, idempotencyKey);
      const key = `${idempotencyKey}/${taskId}`;
      const idempotency =
        idempotencyKey === ""
          ? undefined
          : ({ key, digest: digestOfRetry(taskId), replay: "always" } as const);
      const endpointOf = (name: string) => deployment.taskEndpoint(name).manifest;
      const asked = { taskId, signal, idempotency, refusal, origin };
      await deployment.queue.amending.retry(asked, endpointOf);
    }),
  };
}

function deleting({ filter, abort }: DeleteTasksRequest, { signal }: HandlerContext): Work {
  const { errorContains = "" } = filter ?? {};
  const kept = abort ? [...LIVE, ...ENDED] : [TaskStatus.QUEUED, ...ENDED];
  return {
    method: "DeleteTasks",
    atOnce: MAX_DELETIONS_AT_ONCE,
    statuses: errorContains === "" ? kept : [TaskStatus.FAILURE],
    change: async (tasks, { queue: { amending } }) => {
      const outcomes = await amending.deleteAll(tasks.map(({ taskId }) => taskId));
      // One that is gone meanwhile is as it should be.
      return Promise.all(
        tasks.map(({ taskId }, at) =>
          outcomes[at] === "running"
            ? faultOf(amending.delete({ taskId, signal }, abort))
            : undefined,
        ),
      );
    },
  };
}

/** A filter in the audit log: what of it is set, without text that may stand in tasks. */
function shownFilter(filter: TaskFilter | undefined): { readonly [name: string]: string } {
  const { deployments = [], endpoint = "", statuses = [], tags = [], scheduled } = filter ?? {};
  const hasText = (filter?.text ?? "") !== "" || (filter?.errorContains ?? "") !== "";
  const from = filter?.createdFrom && timestampDate(filter.createdFrom).toISOString();
  const before = filter?.createdBefore && timestampDate(filter.createdBefore).toISOString();
  return {
    ...(deployments.length > 0 && { deployments: deployments.join(" ") }),
    ...(endpoint !== "" && { endpoint }),
    ...(filter?.key && { key: "given" }),
    ...(tags.length > 0 && { tags: "given" }),
    ...(statuses.length > 0 && { statuses: statuses.map((one) => WORDS.get(one)).join(" ") }),
    ...(scheduled !== undefined && { scheduled: String(scheduled) }),
    ...(from !== undefined && { created_from: from }),
    ...(before !== undefined && { created_before: before }),
    ...(hasText && { text: "given" }),
    ...(filter?.all && { all: "true" }),
  };
}

async function changeTasks(req: BulkRequest, ctx: HandlerContext, ports: BulkOptions, work: Work) {
  const reader = readerOf(req, ctx);
  const filter = checked(req.filter);
  const search = await OrganizationSearch.begin(ports, reader, {
    ...filter,
    statuses: filter.statuses.length === 0 ? [...work.statuses] : filter.statuses,
    pageToken: req.pageToken,
    method: work.method,
  });
  const deployments = new Deployments(ports.directory, reader, ctx);
  const outcome = new Outcome();
  const untilMs = performance.now() + BULK_BUDGET_MS;
  let searches = 0;
  try {
    do {
      const tasks = await search.nextKeys(req.dryRun ? MAX_COUNTED_AT_ONCE : work.atOnce);
      if (req.dryRun) {
        outcome.changed += tasks.length;
      } else {
        const found = Map.groupBy(tasks, (task) => search.deploymentOf(task));
        const changes = await Promise.all(
          [...found].map(([named, own]) =>
            deployments
              .find(named)
              .then((deployment) => work.change(own, deployment))
              .catch((err: unknown) => own.map(() => toProblem(err))),
          ),
        );
        outcome.countAll(changes.flat());
      }
      searches += 1;
      ctx.signal.throwIfAborted();
    } while (!search.isOver && searches < MAX_SEARCHES_PER_CALL && performance.now() < untilMs);
  } finally {
    if (!req.dryRun && outcome.changed > 0) {
      await work.record?.(outcome.changed, reader);
    }
  }
  return {
    changed: outcome.changed,
    skipped: outcome.skipped,
    nextPageToken: search.pageToken,
  };
}

/** The running deployments of one call, each found once. */
class Deployments {
  readonly #directory: BulkOptions["directory"];
  readonly #reader: Member;
  readonly #host: string;
  readonly #found = new Map<string, Promise<Deployment>>();

  constructor(directory: BulkOptions["directory"], reader: Member, ctx: HandlerContext) {
    this.#directory = directory;
    this.#reader = reader;
    this.#host = hostOf(ctx.values);
  }

  /** Rejects as a call of the deployment would. */
  find(named: string): Promise<Deployment> {
    const known = this.#found.get(named);
    if (known !== undefined) {
      return known;
    }
    const finding = this.#find(named);
    this.#found.set(named, finding);
    return finding;
  }

  async #find(named: string): Promise<Deployment> {
    const { principal } = this.#reader;
    const located = await this.#directory.find({ named, header: "", host: this.#host }, principal);
    authorize(principal, Access.ENDPOINT, { deployment: located.facts });
    await located.wake?.();
    return located.deployment();
  }
}

/** What became of the tasks of one call. */
class Outcome {
  changed = 0;
  readonly #skipped = new Map<Reason, { reason: Reason; count: number; message: string }>();

  /** Throws a fault that other tasks would meet as well, when all are counted. */
  countAll(faults: readonly Changing[]): void {
    for (const fault of faults) {
      this.#count(fault);
    }
    const fatal = faults.find((fault) => fault !== undefined && FATAL.has(fault.reason));
    if (fatal) {
      throw fatal;
    }
  }

  #count(fault: Changing): void {
    if (fault === undefined) {
      this.changed += 1;
      return;
    }
    const { reason, rawMessage: message } = fault;
    const same = this.#skipped.get(reason);
    if (same === undefined) {
      this.#skipped.set(reason, { reason, count: 1, message });
    } else {
      same.count += 1;
    }
  }

  get skipped() {
    return [...this.#skipped.values()];
  }
}

/** Throws REQUEST_INVALID for a filter that chooses everything without saying so. */
function checked(filter: TaskFilter | undefined): TaskFilter {
  const given = filter as TaskFilter;
  if (!TaskFilterSchema.fields.some((field) => isFieldSet(given, field))) {
    throw invalid("all", "must be true where no other part of the filter is set");
  }
  return given;
}

function invalid(field: string, description: string): Problem {
  const path = `filter.${field}`;
  return problem("REQUEST_INVALID", `${path} ${description}`, {
    violations: [{ field: path, description }],
  });
}
