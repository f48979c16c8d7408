/**
 * WatchTasks: the newest tasks of an organization, and what changes among them. The page is read
 * once a second while anybody follows it, once for all who follow the same one; each follower is
 * sent what is new to it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  OrganizationTaskService,
  WatchTasksRequest,
  WatchTasksResponseSchema,
} from "../../../../gen/tessera/v1/organization_task_pb.js";
import { type Task as TaskMessage, TaskSchema } from "../../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../../errors.ts";
import { hasExpired } from "../../../tasks/task.ts";
import { SharedRead } from "../../../time/shared-read.ts";
import type { Member } from "../engine/caller.ts";
import { pageSizeOf } from "../page.ts";
import { milliseconds, toTaskMessage } from "./messages.ts";
import { OrganizationSearch, readerOf, type SearchPorts } from "./search.ts";

/** Interval at which a page that is followed is read: two queries. */
const PAGE_POLL_INTERVAL_MS = 1_000;

/** How long a follower goes without a message: proxies close connections that say nothing. */
const PAGE_KEEP_ALIVE_MS = 20_000;

/** How long a page is followed: then the caller proves again who it is. */
const MAX_PAGE_FOLLOW_MS = 600_000;

/** Callers that may follow pages of tasks on this node at once. */
const MAX_PAGE_FOLLOWERS = 500;

/** Tasks on a page that is followed. */
const MAX_FOLLOWED_TASKS = 200;

/** How long a page is followed, and how long without a message, in milliseconds. */
export interface Following {
  readonly forMs: number;
  readonly keepAliveMs: number;
}

type WatchTasks = ServiceImpl<typeof OrganizationTaskService>["watchTasks"];

/** A task with its bytes, by which a change is seen. */
export interface Shown {
  readonly message: TaskMessage;
  readonly bytes: Uint8Array;
}

export interface TaskPage {
  readonly tasks: ReadonlyMap<string, Shown>;
  readonly nextPageToken: string;
}

/** A page that is followed, and by how many. */
interface Followed {
  readonly page: SharedRead<TaskPage>;
  followers: number;
}

export function watchTasks(ports: SearchPorts): WatchTasks {
  const pages = new Map<string, Followed>();
  let followers = 0;

  return async function* (req, ctx) {
    const reader = readerOf(req, ctx);
    if (followers >= MAX_PAGE_FOLLOWERS) {
      const message = `${MAX_PAGE_FOLLOWERS} callers follow tasks here, which is the limit: try again`;
      throw problem("TOO_MANY_WAITING", message, { retryAfterMs: 5_000 });
    }
    const key = keyOf(req, reader);
    const followed = pages.get(key) ?? {
      page: new SharedRead(() => readPage(req, reader, ports), {
        maxAgeMs: PAGE_POLL_INTERVAL_MS,
      }),
      followers: 0,
    };
    pages.set(key, followed);
    followed.followers += 1;
    followers += 1;
    try {
      const forMs = req.followFor === undefined ? MAX_PAGE_FOLLOW_MS : milliseconds(req.followFor);
      yield* follow(followed.page, ctx.signal, { forMs, keepAliveMs: PAGE_KEEP_ALIVE_MS });
    } finally {
      followers -= 1;
      followed.followers -= 1;
      if (followed.followers === 0) {
        pages.delete(key);
      }
    }
  };
}

type Message = MessageInitShape<typeof WatchTasksResponseSchema>;

/** Exported for tests, which have no twenty seconds. */
export async function* follow(
  page: Pick<SharedRead<TaskPage>, "get">,
  signal: AbortSignal,
  { forMs, keepAliveMs }: Following,
): AsyncGenerator<Message> {
  const untilMs = performance.now() + forMs;
  let sent: TaskPage | undefined;
  let sentMs = 0;
  let leftMs = forMs;
  do {
    const next = await page.get();
    signal.throwIfAborted();
    const change = changeOf(sent, next);
    const nowMs = performance.now();
    if (change !== undefined || nowMs - sentMs >= keepAliveMs) {
      yield change ?? { nextPageToken: next.nextPageToken };
      sentMs = nowMs;
    }
    sent = next;
    const pauseMs = Math.min(PAGE_POLL_INTERVAL_MS, leftMs);
    await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    leftMs = untilMs - performance.now();
  } while (leftMs > 0);
}

/** What a follower does not know yet; undefined: nothing. `sent` is undefined at first. */
function changeOf(sent: TaskPage | undefined, next: TaskPage): Message | undefined {
  if (sent === next) {
    return undefined;
  }
  const { tasks, nextPageToken } = next;
  const changed = [...tasks].filter(([taskId, { bytes }]) => {
    const known = sent?.tasks.get(taskId);
    return known === undefined || Buffer.compare(known.bytes, bytes) !== 0;
  });
  const removedTaskIds = [...(sent?.tasks.keys() ?? [])].filter((taskId) => !tasks.has(taskId));
  const isSame = changed.length === 0 && removedTaskIds.length === 0;
  if (isSame && sent?.nextPageToken === nextPageToken) {
    return undefined;
  }
  return { tasks: changed.map(([, { message }]) => message), removedTaskIds, nextPageToken };
}

async function readPage(
  req: WatchTasksRequest,
  reader: Member,
  ports: SearchPorts,
): Promise<TaskPage> {
  // Its token is one of the list, which shows what follows.
  const method = "ListOrganizationTasks";
  const search = await OrganizationSearch.begin(ports, reader, { ...req, pageToken: "", method });
  const found = await search.next(Math.min(pageSizeOf(req), MAX_FOLLOWED_TASKS));
  const nowMs = ports.now();
  const tasks = new Map<string, Shown>();
  for (const task of found) {
    if (!hasExpired(task, nowMs)) {
      const message = toTaskMessage(task, search.deploymentOf(task));
      tasks.set(task.taskId, { message, bytes: toBinary(TaskSchema, message) });
    }
  }
  return { tasks, nextPageToken: search.pageToken };
}

/** The same for callers who see the same page: all members, and each token for itself. */
function keyOf(req: WatchTasksRequest, { organizationId, principal }: Member): string {
  const { deployments, endpoint, statuses, createdFrom, createdBefore, errorContains } = req;
  const who = principal.kind === "token" ? principal.tokenId : "";
  const times = [createdFrom, createdBefore].map((time) => time && `${time.seconds}.${time.nanos}`);
  return JSON.stringify([
    ...[organizationId, who, deployments, endpoint, statuses, times, errorContains],
    pageSizeOf(req),
  ]);
}
