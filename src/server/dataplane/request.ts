/** Reads what requests of the data plane ask for: task, wait, preferences. */
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { readBody } from "../http/body.ts";

const MAX_WAIT_S = 60;

/** Bodies of cancel and retry hold a task's id and no more. */
const MAX_CONTROL_BODY_BYTES = 16_384;

type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

/** One query parameter, which may be there once. */
export function queryParameter(req: FastifyRequest, name: string): string | undefined {
  const value = (req.query as Query)[name];
  if (Array.isArray(value)) {
    throw invalid(name, "is given more than once");
  }
  return value as string | undefined;
}

/** The task that the query names. */
export function queryTaskId(req: FastifyRequest): string {
  const taskId = queryParameter(req, "task_id");
  if (!taskId) {
    throw invalid("task_id", `is missing: ${req.url.split("?", 1)[0]}?task_id=…`);
  }
  return taskId.slice(0, 64);
}

/** `wait=30`: seconds, from 0 to 60. */
export function queryWait(req: FastifyRequest): Duration | undefined {
  const text = queryParameter(req, "wait");
  if (text === undefined) {
    return undefined;
  }
  const seconds = /^\d+(?:\.\d+)?s?$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (!(seconds >= 0 && seconds <= MAX_WAIT_S)) {
    throw invalid("wait", `must be a number of seconds from 0 to ${MAX_WAIT_S}`);
  }
  return durationFromMs(Math.round(seconds * 1000));
}

/** `Prefer: wait=20` (RFC 7240, section 4.3). A preference, so what cannot be is not an error. */
export function preferredWait(req: FastifyRequest): Duration | undefined {
  const { prefer } = req.headers;
  if (prefer === undefined) {
    return undefined;
  }
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d+)"?/i.exec(String(prefer));
  const seconds = Math.min(Number(match?.[1] ?? 0), MAX_WAIT_S);
  return seconds > 0 ? durationFromMs(seconds * 1000) : undefined;
}

/** `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header); empty when there is none. */
export function idempotencyKey({ headers }: FastifyRequest): string {
  return String(headers["idempotency-key"] ?? "");
}

/** What cancel and retry are about: from the query, or from a JSON body. */
export async function controlRequest(
  req: FastifyRequest,
): Promise<{ readonly taskId: string; readonly abort: boolean }> {
  const body = await controlBody(req);
  const taskId = queryParameter(req, "task_id") ?? body.task_id;
  if (typeof taskId !== "string" || taskId === "") {
    throw invalid(
      "task_id",
      `is missing: send it in the query, ?task_id=…, or as {"task_id": "…"}`,
    );
  }
  if (body.task_id !== undefined && body.task_id !== taskId) {
    throw invalid("task_id", "is one in the query and another in the body");
  }
  const abort = queryParameter(req, "abort") ?? body.abort ?? false;
  if (![true, false, "true", "false", "1", "0", ""].includes(abort as boolean | string)) {
    throw invalid("abort", "must be true or false");
  }
  return {
    taskId: taskId.slice(0, 64),
    abort: abort === true || abort === "true" || abort === "1" || abort === "",
  };
}

async function controlBody(req: FastifyRequest): Promise<{ task_id?: unknown; abort?: unknown }> {
  const data = await readBody(req, MAX_CONTROL_BODY_BYTES);
  if (data.length === 0) {
    return {};
  }
  let body: unknown;
  try {
    body = JSON.parse(data.toString());
  } catch (cause) {
    throw problem("BODY_MALFORMED", 'the body is not JSON: send {"task_id": "…"}, or nothing', {
      cause,
    });
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw problem("BODY_MALFORMED", 'the body must be a JSON object: {"task_id": "…"}');
  }
  return body;
}

/** Where a reader of the event log left off. */
export function lastEventId(req: FastifyRequest): bigint {
  const text = String(req.headers["last-event-id"] ?? queryParameter(req, "last_event_id") ?? "0");
  if (!/^\d{1,15}$/.test(text)) {
    throw invalid("Last-Event-ID", "must be the number of an event");
  }
  return BigInt(text);
}

export function invalid(field: string, description: string): Error {
  return problem("REQUEST_INVALID", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}
