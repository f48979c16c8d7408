/** Conversion of tasks, events and results to the messages of `tessera.v1`, and of what a call sends to what its function gets. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Duration, durationMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ContextValues, HandlerContext } from "@connectrpc/connect";
import {
  FailureReason,
  QueuedCode,
  type QueuedReason as QueuedReasonMessage,
  QueuedReasonSchema,
  ResultFormat,
  type TaskAttempt as TaskAttemptMessage,
  TaskAttemptSchema,
  type TaskEvent as TaskEventMessage,
  TaskEventSchema,
  type TaskFailure as TaskFailureMessage,
  TaskFailureSchema,
  type Task as TaskMessage,
  TaskProgressSchema,
  type TaskResult,
  TaskStatus,
} from "../../../gen/tessera/v1/task_pb.js";
import { seesDeployments } from "../../auth/permissions.ts";
import { addressOf, isSecure } from "../../auth/principal.ts";
import { giveBack } from "../../collections/bytes.ts";
import { type QueuedReason, sentenceOf } from "../../deployments/queued-reason.ts";
import { problem } from "../../errors.ts";
import {
  type HeaderField,
  MAX_HEAD_BYTES,
  MAX_HEAD_FIELDS,
  type RequestHead,
} from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { QueuePosition } from "../../queue/estimate.ts";
import type { Submitted } from "../../queue/submission.ts";
import type { StreamedBodies } from "../../server/http/streamed-bodies.ts";
import { callerIn } from "../../server/mounts/headers.ts";
import { passedValue } from "../../server/passed-headers.ts";
import { callerOf, hostOf } from "../../server/rpc/engine/caller.ts";
import { standingOf } from "../../server/rpc/engine/standing.ts";
import type { CallInput } from "../../service/input/arguments.ts";
import { isMountName } from "../../service/mounts.ts";
import { outputBody } from "../../service/output.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";
import { attemptsOf } from "../../tasks/attempt.ts";
import type { TaskEvent, TaskEventBody } from "../../tasks/event.ts";
import type { Task, TaskFailure } from "../../tasks/task.ts";
import { nodeOf } from "../../tasks/worker-id.ts";
import { timestampFromMs } from "../../time/messages.ts";
import {
  type ResultMessageOptions,
  resultMessage,
  toStoredResult,
  valueMessage,
} from "./stored.ts";

/** Statuses as the proto file spells them. */
export const STATUS = {
  queued: TaskStatus.QUEUED,
  running: TaskStatus.RUNNING,
  success: TaskStatus.SUCCESS,
  failure: TaskStatus.FAILURE,
  cancelled: TaskStatus.CANCELLED,
} as const;

const REASON = {
  error: FailureReason.ERROR,
  timeout: FailureReason.TIMEOUT,
  expired: FailureReason.EXPIRED,
  worker_lost: FailureReason.WORKER_LOST,
  out_of_memory: FailureReason.OUT_OF_MEMORY,
  node_lost: FailureReason.NODE_LOST,
  interrupted: FailureReason.INTERRUPTED,
} as const;

/** A duration of a request in milliseconds; 0 if absent. */
export function milliseconds(span: Duration | undefined): number {
  return span === undefined ? 0 : durationMs(span);
}

/** @param deployment the task's deployment as `organization/name`; tasks are stored under its id. */
export function toTaskMessage(task: Task, deployment: string, place?: QueuePosition): TaskMessage {
  // A literal, because `create` walks the message's description and no message is sent as often as this.
  return {
    $typeName: "tessera.v1.Task",
    taskId: task.taskId,
    deployment,
    endpoint: task.endpoint,
    status: STATUS[task.status],
    createdAt: toTimestamp(task.createdAtMs),
    startedAt: toTimestamp(task.startedAtMs),
    finishedAt: toTimestamp(task.finishedAtMs),
    expiresAt: toTimestamp(task.expiresAtMs),
    attempt: task.attempt,
    progress: task.progress && create(TaskProgressSchema, task.progress),
    retryOf: task.retryOf ?? "",
    schedule: task.schedule ?? "",
    key: task.key ?? "",
    tags: task.tags === undefined ? [] : [...task.tags],
    failure: task.failure && toFailureMessage(task.failure),
    queuePosition: place?.position,
    estimatedStart: toTimestamp(place?.estimatedStartMs),
    priority: task.priority,
    runAt: task.runAtMs > task.createdAtMs ? toTimestamp(task.runAtMs) : undefined,
    startBy: toTimestamp(task.startByMs),
    attempts: [],
    waitsFor: place?.awaited ?? "",
    argumentsPreview: "",
  };
}

/** Why a task is queued, as its caller is told. */
export function toQueuedReason(
  reason: QueuedReason,
  { seesDeployment }: { readonly seesDeployment: boolean },
): QueuedReasonMessage {
  const message = sentenceOf(reason, seesDeployment);
  return create(QueuedReasonSchema, { code: QueuedCode[reason.code], message });
}

/**
 * Whether a caller is told more of why a task is queued: who may see the deployment, and has not come
 * by the access of a task, which its maker may have given to anybody.
 */
export function seesDetail(values: ContextValues, organizationId: string): boolean {
  return (
    standingOf(values) === undefined &&
    seesDeployments(callerOf({ values }).principal, organizationId)
  );
}

/** The attempts of a task, for the answers that have them. */
export function toAttemptMessages(task: Task): TaskAttemptMessage[] {
  return attemptsOf(task).map(({ number, worker, failure, ...times }) =>
    create(TaskAttemptSchema, {
      number,
      worker,
      node: nodeOf(worker),
      startedAt: toTimestamp(times.startedAtMs),
      endedAt: toTimestamp(times.endedAtMs),
      ...(failure && { failure: toFailureMessage(failure) }),
      retryAt: toTimestamp(times.retryAtMs),
      ...(times.peakMemoryBytes !== undefined && {
        peakMemoryBytes: BigInt(times.peakMemoryBytes),
      }),
    }),
  );
}

/** Converts milliseconds since 1970; undefined stays undefined. */
function toTimestamp(timeMs: number): Timestamp;
function toTimestamp(timeMs: number | undefined): Timestamp | undefined;
function toTimestamp(timeMs: number | undefined): Timestamp | undefined {
  return timeMs === undefined ? undefined : timestampFromMs(timeMs);
}

function toFailureMessage({ reason, code, message }: TaskFailure): TaskFailureMessage {
  return create(TaskFailureSchema, { reason: REASON[reason], code, message });
}

export function toEventMessage({ sequence, timeMs, attempt, body }: TaskEvent): TaskEventMessage {
  return create(TaskEventSchema, {
    sequence: BigInt(sequence),
    time: toTimestamp(timeMs),
    attempt,
    event: toEventBody(body),
  });
}

function toEventBody(body: TaskEventBody) {
  switch (body.kind) {
    case "state":
      return {
        case: "state" as const,
        value: {
          status: STATUS[body.status],
          ...(body.failure && { failure: toFailureMessage(body.failure) }),
          retryAt: toTimestamp(body.retryAtMs),
        },
      };
    case "progress":
      return {
        case: "progress" as const,
        value: { fraction: body.fraction, message: body.message },
      };
    case "log": {
      const { level, message, fieldsJson, line = 0 } = body;
      const fields = fieldsJson === undefined ? undefined : (JSON.parse(fieldsJson) as JsonObject);
      return { case: "log" as const, value: { level, message, line, ...(fields && { fields }) } };
    }
  }
}

/** A result in the requested format; `endpoint` is undefined if it no longer exists. */
export function toResultMessage(
  result: Payload,
  endpoint: EndpointManifest | undefined,
  options: ResultMessageOptions,
): TaskResult | Promise<TaskResult> {
  const output = outputBody(result, endpoint);
  if (result.response && options.bodies) {
    options.bodies.head = result.response;
  }
  if ("blob" in output) {
    return toStoredResult(result, output, options);
  }
  if ("data" in output) {
    return resultMessage(output, output.data);
  }
  const { format, bodies } = options;
  if (format !== ResultFormat.BODY) {
    return valueMessage(result.json, { what: "the result", from: options.from });
  }
  if (bodies === undefined) {
    return resultMessage(output, Buffer.from(output.text));
  }
  bodies.text = output.text;
  return resultMessage(output);
}

// The arguments of a call, and the release of their files.

/** The input of a call: streamed beside the message, or part of it. */
export function inputOf(input: CallInput, bodies: StreamedBodies | undefined): CallInput {
  const streamed = bodies?.request;
  return streamed ? { case: "stream", value: streamed } : input;
}

/** Releases the files of arguments unless a new task was stored with them. */
export function releasingUnless(
  submitting: Promise<Submitted>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Submitted> {
  return payload.files.length === 0 ? submitting : releaseUnlessStored(submitting, payload, keeper);
}

async function releaseUnlessStored(
  submitting: Promise<Submitted>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Submitted> {
  let stored = false;
  try {
    const submitted = await submitting;
    stored = !submitted.replayed;
    return submitted;
  } finally {
    if (!stored) {
      await keeper.release(payload);
    }
  }
}

/** Releases arguments, and their files, when their call has ended. */
export function finallyReleasing<Result>(
  calling: Promise<Result>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Result> {
  const isLight = payload.files.length === 0 && payload.jsonBytes === undefined;
  return isLight ? calling : calling.finally(() => releaseArguments(payload, keeper));
}

/** The same for a call that has ended. */
export async function releaseArguments(payload: Payload, keeper: FileKeeper): Promise<void> {
  if (payload.jsonBytes) {
    giveBack(payload.jsonBytes);
  }
  for (const file of payload.files) {
    if ("data" in file) {
      giveBack(file.data);
    }
  }
  await keeper.release(payload);
}

// The head of a request as its function is shown it: the headers that the endpoint names, or all,
// as far as they are passed on (`server/passed-headers.ts`). What is stored with a task has
// neither `Authorization` nor `Cookie` unless the endpoint names them.

/** Headers that a stored request has only where its endpoint names them. */
const SECRET: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/** Who calls, as the platform knows it. */
const CALLER = "tessera-caller";

type Context = Pick<HandlerContext, "requestHeader" | "requestMethod" | "url" | "values">;

/** The request, if the endpoint is shown it. Errors: REQUEST_INVALID for too many headers. */
export function shownRequest(ctx: Context, endpoint: EndpointManifest): RequestHead | undefined {
  if (endpoint.request === undefined) {
    return undefined;
  }
  if (!isMountName(endpoint.name)) {
    return requestHead(ctx, endpoint, endpoint.request.headers);
  }
  // The arguments hold the request itself; the head adds only who calls.
  const caller = callerIn(ctx.values);
  const headers: HeaderField[] = caller === undefined ? [] : [[CALLER, caller]];
  return { ...requestHead(ctx, endpoint, []), headers };
}

/** The arguments with the request that they came with. */
export function withRequest(payload: Payload, request: RequestHead | undefined): Payload {
  return request === undefined ? payload : { ...payload, request };
}

function requestHead(
  { requestHeader, requestMethod, url, values }: Context,
  { name: endpoint, kind }: EndpointManifest,
  named: readonly string[],
): RequestHead {
  const headers: HeaderField[] = [];
  const takesAll = named.includes("*");
  const caller = callerIn(values);
  if (caller !== undefined && (takesAll || named.includes(CALLER))) {
    headers.push([CALLER, caller]);
  }
  for (const [name, value] of requestHeader) {
    if (name === CALLER) {
      // The platform alone says who calls.
      continue;
    }
    const isNamed = named.includes(name) || (takesAll && !(kind === "task" && SECRET.has(name)));
    const shown = isNamed ? passedValue(name, value, values) : undefined;
    if (shown !== undefined) {
      headers.push([name, shown]);
    }
  }
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (headers.length > MAX_HEAD_FIELDS || bytes > MAX_HEAD_BYTES) {
    const message = `${endpoint} is shown the headers of its requests: at most ${MAX_HEAD_FIELDS} of ${MAX_HEAD_BYTES} bytes together, and these are ${headers.length} of ${bytes}`;
    throw problem("REQUEST_INVALID", message);
  }
  const path = url.replace(/^[a-z]+:\/\/[^/]*/i, "");
  const scheme = isSecure(values) ? "https" : "http";
  return {
    method: requestMethod,
    url: `${scheme}://${hostOf(values)}${path}`,
    headers,
    client: addressOf(values),
  };
}
