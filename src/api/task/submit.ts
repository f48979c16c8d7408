/** SubmitTask, and SubmitTasks, which submits up to 1,000 tasks in one commit. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  type Replay,
  SubmitTaskResponseSchema,
  SubmitTasksResponseSchema,
  type SubmittedTask,
  SubmittedTaskSchema,
  type TaskService,
} from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import { Problem, toProblem } from "../../errors.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { Submission, Submitted } from "../../queue/submission.ts";
import { type StreamedBodies, streamedBodies } from "../../server/http/streamed-bodies.ts";
import { keyOf } from "../../server/rpc/engine/call-key.ts";
import { noteTask, originOf } from "../../server/rpc/engine/caller.ts";
import { deploymentOf } from "../../server/rpc/target.ts";
import type { CallInput } from "../../service/input/arguments.ts";
import { isFinal } from "../../tasks/task.ts";
import { durationFromMs } from "../../time/messages.ts";
import type { Origin } from "../../tracing/context.ts";
import { inputOf, milliseconds, releasingUnless, toTaskMessage } from "./messages.ts";
import { shownRequest, withRequest } from "./request-head.ts";
import { answer } from "./result.ts";
import {
  checkKey,
  digestOfCall,
  idempotencyOf,
  noteReplay,
  type ScheduleFields,
  scheduleOf,
  scheduleText,
  tagsOf,
} from "./submission.ts";

/** Calls of one submit that are read before other requests get their turn. */
const MAX_CALLS_PER_TURN = 50;

/** The handlers of submits. */
export const submitHandlers: Pick<ServiceImpl<typeof TaskService>, "submitTask" | "submitTasks"> = {
  async submitTask(req, ctx) {
    const deployment = deploymentOf(ctx);
    const origin = originOf(ctx);
    const refusal = deployment.admit("task", origin.tokenId, req.idempotencyKey);
    const { queue, tasks, name } = deployment;
    const bodies = ctx.values.get(streamedBodies);
    const reading = read(deployment, req, { ctx, origin, bodies, refusal });
    const { endpoint, payload, options } = reading instanceof Promise ? await reading : reading;
    const submitting = queue.submit(endpoint, payload, options);
    const { task, replayed } = await releasingUnless(submitting, payload, deployment.files.task);
    noteTask(ctx, task);
    if (replayed) {
      noteReplay(ctx);
    }
    const response = create(SubmitTaskResponseSchema);
    response.replayed = replayed;
    const waitMs = milliseconds(req.wait);
    if (waitMs === 0) {
      const place = task.status === "queued" ? await tasks.place(task) : undefined;
      response.task = toTaskMessage(task, name, place);
      return response;
    }
    const { taskId } = task;
    // The task is accepted even if the wait fails: an error would be taken for a refusal.
    const ended = await tasks
      .result({ taskId, waitMs, signal: ctx.signal })
      .catch(() => ({ task, result: undefined }));
    response.task = toTaskMessage(ended.task, name, await tasks.place(ended.task));
    if (isFinal(ended.task.status)) {
      response.result = await answer(ended, deployment, { format: req.resultFormat, bodies });
    }
    return response;
  },

  async submitTasks(req, ctx) {
    const deployment = deploymentOf(ctx);
    const origin = originOf(ctx);
    const keyed = req.tasks.find(({ idempotencyKey }) => idempotencyKey !== "");
    const refusal = deployment.admit("task", origin.tokenId, keyed?.idempotencyKey);
    const read = await readAll(deployment, req.tasks, { ctx, origin, refusal });
    const valid = read.filter((one): one is Submission => !(one instanceof Problem));
    const outcomes = (await deployment.queue.submitAll(valid)).values();
    const results = read.map((one) =>
      toResult(one instanceof Problem ? one : outcomes.next().value, deployment.name),
    );
    const response = create(SubmitTasksResponseSchema);
    response.results = results;
    response.accepted = results.filter(({ outcome }) => outcome.case === "task").length;
    response.refused = results.length - response.accepted;
    return response;
  },
};

/** A call as both requests carry it. */
interface CallFields extends ScheduleFields {
  readonly endpoint: string;
  readonly input: CallInput;
  readonly idempotencyKey: string;
  readonly replay?: Replay;
  readonly webhook: string;
  readonly key: string;
  readonly tags: readonly string[];
}

/** How a call was sent. */
interface Sent {
  readonly ctx: HandlerContext;
  readonly origin: Origin;
  readonly bodies?: StreamedBodies | undefined;
  /** Of what is no repeat. */
  readonly refusal: Problem | undefined;
}

/** Checks a call. Throws if it is invalid, or rejects if it has files. */
function read(
  deployment: Deployment,
  call: CallFields,
  { ctx, origin, bodies, refusal }: Sent,
): Submission | Promise<Submission> {
  if (refusal !== undefined && call.idempotencyKey === "") {
    throw refusal;
  }
  const { manifest, reader } = deployment.taskEndpoint(call.endpoint);
  const schedule = scheduleOf(call, {
    nowMs: Date.now(),
    maxRetentionMs: deployment.maxRetentionMs,
  });
  checkKey(call);
  const request = shownRequest(ctx, manifest);
  const webhook = call.webhook || undefined;
  const key = keyOf(ctx, call.key, manifest);
  const tags = tagsOf(call.tags);
  const toSubmission = (payload: Payload): Submission => {
    const idempotency = idempotencyOf(call, () => digestOfCall(payload, scheduleText(call)));
    return {
      endpoint: manifest,
      payload: withRequest(payload, request),
      options: { ...schedule, key, idempotency, refusal, origin, webhook, tags },
    };
  };
  const { files, readers } = deployment;
  const payload = reader.read(inputOf(call.input, bodies), files.task, readers);
  return payload instanceof Promise ? payload.then(toSubmission) : toSubmission(payload);
}

/** Checks each of the calls on its own. */
async function readAll(
  deployment: Deployment,
  calls: readonly CallFields[],
  sent: Sent,
): Promise<(Submission | Problem)[]> {
  const all: (Submission | Problem)[] = [];
  for (const [index, call] of calls.entries()) {
    if (index % MAX_CALLS_PER_TURN === MAX_CALLS_PER_TURN - 1) {
      await nextTurn();
    }
    try {
      all.push(await read(deployment, call, sent));
    } catch (err) {
      all.push(toProblem(err));
    }
  }
  return all;
}

function toResult(outcome: Submitted | Problem | undefined, deployment: string): SubmittedTask {
  if (outcome === undefined) {
    throw new Error("there are fewer outcomes than calls");
  }
  if (!(outcome instanceof Problem)) {
    const { task, replayed } = outcome;
    const value = toTaskMessage(task, deployment);
    return create(SubmittedTaskSchema, { outcome: { case: "task", value }, replayed });
  }
  const { code, reason, rawMessage, violations, retryAfterMs } = outcome;
  const value = {
    code: codeToString(code),
    reason,
    message: rawMessage,
    fieldViolations: [...violations],
    ...(retryAfterMs !== undefined && { retryAfter: durationFromMs(retryAfterMs) }),
  };
  return create(SubmittedTaskSchema, { outcome: { case: "error", value } });
}
