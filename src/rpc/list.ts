/** ListTasks: pages of a deployment's tasks, newest first. */
import { createHash } from "node:crypto";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ListTasksRequest } from "../../gen/tessera/v1/task_pb.js";
import type { HostedDeployment } from "../deployments/hosted.ts";
import { problem } from "../errors.ts";
import type { TaskListing } from "../storage/storage.ts";
import { idBoundary, isTaskId } from "../tasks/id.ts";
import type { Task, TaskStatus } from "../tasks/task.ts";
import { STATUS, toTaskMessage } from "./messages.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/**
 * How often the storage is asked for one page. Each time it looks at a bounded
 * number of tasks, so a filter that few tasks fit gives a short page at last.
 */
const MAX_ROUNDS = 10;

/** The last moment that an id can carry. */
const MAX_TIME_MS = 2 ** 48 - 1;

const WORDS = new Map<number, TaskStatus>(
  Object.entries(STATUS).map(([word, status]) => [status, word as TaskStatus]),
);

/** One page. Rejects with REQUEST_INVALID for a token that is not of this list. */
export async function listTasks({ name, queue }: HostedDeployment, req: ListTasksRequest) {
  const filter = filterOf(req);
  const signature = sign(name, filter);
  const pageSize = Math.min(req.pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
  let before = req.pageToken === "" ? startOf(filter) : openToken(req.pageToken, signature);
  const tasks: Task[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const limit = pageSize - tasks.length;
    const page = await queue.list({ ...filter, limit, ...(before !== undefined && { before }) });
    tasks.push(...page.tasks);
    before = page.nextBefore;
    if (before === undefined || tasks.length >= pageSize) {
      break;
    }
  }
  return {
    tasks: tasks.map((task) => toTaskMessage(task)),
    nextPageToken: before === undefined ? "" : makeToken(before, signature),
  };
}

type Filter = Omit<TaskListing, "deploymentId" | "before" | "limit">;

function filterOf({ status, endpoint, createdFrom, createdBefore }: ListTasksRequest): Filter {
  const word = WORDS.get(status);
  return {
    ...(word !== undefined && { status: word }),
    ...(endpoint !== "" && { endpoint }),
    ...(createdFrom && { createdFromMs: bounded(createdFrom) }),
    ...(createdBefore && { createdBeforeMs: bounded(createdBefore) }),
  };
}

/** No task was accepted outside of what an id can carry; gRPC callers may send any number. */
function bounded(time: Timestamp): number {
  return Math.min(Math.max(timestampMs(time), 0), MAX_TIME_MS);
}

/** Ids begin with the time, so the list of earlier tasks need not begin at the newest. */
function startOf({ createdBeforeMs }: Filter): string | undefined {
  return createdBeforeMs === undefined ? undefined : idBoundary(createdBeforeMs);
}

/*
 * A page token is the last id of its page behind a digest of what was listed.
 * It is not a secret and gives no access: it only has to tell a token of
 * another list from one of this.
 */
const SIGNATURE_BYTES = 12;

function sign(deployment: string, filter: Filter): Buffer {
  const text = JSON.stringify([
    deployment,
    filter.status ?? null,
    filter.endpoint ?? null,
    filter.createdFromMs ?? null,
    filter.createdBeforeMs ?? null,
  ]);
  return createHash("sha256").update(text).digest().subarray(0, SIGNATURE_BYTES);
}

function makeToken(before: string, signature: Buffer): string {
  return Buffer.concat([signature, Buffer.from(before)]).toString("base64url");
}

function openToken(token: string, signature: Buffer): string {
  const bytes = Buffer.from(token, "base64url");
  const before = bytes.subarray(SIGNATURE_BYTES).toString();
  if (!isTaskId(before)) {
    throw invalidToken("is not one that ListTasks gave: take it from next_page_token as it is");
  }
  if (!bytes.subarray(0, SIGNATURE_BYTES).equals(signature)) {
    throw invalidToken("belongs to another filter: keep the filter, or begin without a token");
  }
  return before;
}

function invalidToken(description: string): Error {
  return problem("REQUEST_INVALID", `page_token ${description}`, {
    violations: [{ field: "page_token", description }],
  });
}
