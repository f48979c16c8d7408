/** SubmitTask, and SubmitTasks, which is the same for up to 1,000 calls and one commit. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  SubmitTaskResponseSchema,
  SubmitTasksResponseSchema,
  type SubmittedTask,
  SubmittedTaskSchema,
  type TaskService,
} from "../../gen/tessera/v1/task_pb.js";
import type { HostedDeployment } from "../deployments/hosted.ts";
import type { Input } from "../deployments/input/arguments.ts";
import { Problem, problem, toProblem } from "../errors.ts";
import { type StreamedBodies, streamedBodies } from "../http/streamed.ts";
import type { Submission, Submitted } from "../queue/submission.ts";
import type { Payload } from "../sdk/protocol.ts";
import { isFinal } from "../tasks/task.ts";
import { inputOf, releasingUnless } from "./input.ts";
import { milliseconds, toTaskMessage } from "./messages.ts";
import { answer } from "./result.ts";
import { type ScheduleFields, scheduleOf, scheduleText } from "./schedule.ts";
import { deploymentOf } from "./target.ts";

/** Calls read before other requests get their turn. */
const CALLS_PER_TURN = 50;

const MAX_KEY_LENGTH = 255;

export const submitHandlers: Pick<ServiceImpl<typeof TaskService>, "submitTask" | "submitTasks"> = {
  async submitTask(req, ctx) {
    const deployment = deploymentOf(ctx);
    deployment.admit();
    const { queue, name } = deployment;
    const bodies = ctx.values.get(streamedBodies);
    const { endpoint, payload, options } = await read(deployment, req, bodies);
    const submitting = queue.submit(endpoint, payload, options);
    const { task, replayed } = await releasingUnless(submitting, payload, deployment.files.task);
    const response = create(SubmitTaskResponseSchema);
    response.replayed = replayed;
    const waitMs = milliseconds(req.wait);
    if (waitMs === 0) {
      response.task = toTaskMessage(task, name, await queue.place(task));
      return response;
    }
    const { taskId } = task;
    // The task is accepted whatever becomes of the wait: an error would be read as a refusal.
    const ended = await queue
      .result({ taskId, waitMs, signal: ctx.signal })
      .catch(() => ({ task, result: undefined }));
    response.task = toTaskMessage(ended.task, name, await queue.place(ended.task));
    if (isFinal(ended.task.status)) {
      response.result = await answer(ended, deployment, { format: req.resultFormat, bodies });
    }
    return response;
  },

  async submitTasks(req, ctx) {
    const deployment = deploymentOf(ctx);
    deployment.admit();
    const read = await readAll(deployment, req.tasks);
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
  readonly input: Input;
  readonly idempotencyKey: string;
}

/** Checks a call; rejects with what is wrong with it. */
async function read(
  deployment: HostedDeployment,
  call: CallFields,
  bodies?: StreamedBodies,
): Promise<Submission> {
  const { manifest, reader } = deployment.taskEndpoint(call.endpoint);
  const { idempotencyKey: key } = call;
  const schedule = scheduleOf(call, Date.now());
  if (key.length > MAX_KEY_LENGTH) {
    const description = `must have at most ${MAX_KEY_LENGTH} characters`;
    throw problem("REQUEST_INVALID", `idempotency_key ${description}`, {
      violations: [{ field: "idempotency_key", description }],
    });
  }
  const payload = await reader.read(inputOf(call.input, bodies), deployment.files.task);
  const idempotency =
    key === "" ? {} : { idempotency: { key, digest: digest(payload, scheduleText(call)) } };
  return { endpoint: manifest, payload, options: { ...schedule, ...idempotency } };
}

/** Checks calls, each by itself. */
async function readAll(
  deployment: HostedDeployment,
  calls: readonly CallFields[],
): Promise<(Submission | Problem)[]> {
  const all: (Submission | Problem)[] = [];
  for (const [index, call] of calls.entries()) {
    if (index % CALLS_PER_TURN === CALLS_PER_TURN - 1) {
      await nextTurn();
    }
    all.push(await read(deployment, call).catch((err: unknown) => toProblem(err)));
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

/** Tells the same arguments, files included, and the same schedule from others. */
function digest({ json, files }: Payload, schedule: string): string {
  const hash = createHash("sha256").update(json).update(schedule);
  for (const { contentType, filename, ...file } of files) {
    // What is in the blob store has a digest already.
    const bytes = "blob" in file ? file.blob.sha256 : file.data;
    const size = "blob" in file ? file.blob.size : file.data.byteLength;
    hash.update(JSON.stringify([contentType, filename, size])).update(bytes);
  }
  return hash.digest("base64url");
}
