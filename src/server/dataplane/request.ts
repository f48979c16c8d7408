/** Parsers for requests of the data plane: task, wait, preferences, schedule, access. */
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";
import { Replay, type SubmitTaskRequest } from "../../../gen/tessera/v1/task_pb.js";
import { nearest, proposal } from "../../collections/nearest.ts";
import { problem, toProblem } from "../../errors.ts";
import { refuseCharset } from "../../service/input/charset.ts";
import { isOnCalendar } from "../../time/calendar.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";
import { BodyStream, bodyMessage, bodyTooLarge, isForm, NO_BYTES } from "../http/body.ts";
import { decodedStream, readDecoded } from "../http/decoded-body.ts";
import { type FileBeside, type StreamedBodies, streamedBodies } from "../http/streamed-bodies.ts";

/** Longest time that a request may wait for a result. */
const MAX_WAIT_SECONDS = 60;

/** Body of a cancel or retry, which holds a task's id and no more. */
const MAX_CONTROL_BODY_BYTES = 16_384;

type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A query parameter, which may occur once. Errors: REQUEST_INVALID. */
export function queryParameter(req: FastifyRequest, name: string): string | undefined {
  const value = (req.query as Query)[name];
  if (Array.isArray(value)) {
    throw invalid(name, "is given more than once");
  }
  return value as string | undefined;
}

/**
 * Refuses query parameters that are ours, or a slip of the hand away from it, where this path takes
 * none of that name. All others are the function's own, or nobody's: a number against caches,
 * the mark of a campaign. Errors: REQUEST_INVALID, with the nearest name.
 *
 * @param ours what a parameter on this path may be meant as
 */
export function refuseMisspelt(
  req: FastifyRequest,
  known: readonly string[],
  ours: readonly string[],
): void {
  if (!req.url.includes("?")) {
    return;
  }
  for (const name of Object.keys(req.query as Query)) {
    if (!known.includes(name) && nearest(name, ours, 1) !== undefined) {
      throw invalid(name, `is an unknown query parameter${proposal(name, known)}`);
    }
  }
}

/** The task that the query names. */
export function queryTaskId(req: FastifyRequest): string {
  const taskId = queryParameter(req, "task_id");
  if (!taskId) {
    throw invalid("task_id", `is missing: ${req.url.split("?", 1)[0]}?task_id=…`);
  }
  return taskId.slice(0, 64);
}

/** `file=0`: the number of a file in the arguments; undefined if absent. */
export function queryFile(req: FastifyRequest): number | undefined {
  const text = queryParameter(req, "file");
  if (text !== undefined && !/^\d{1,9}$/.test(text)) {
    throw invalid("file", "must be the number of a file, from 0");
  }
  return text === undefined ? undefined : Number(text);
}

/** A number of seconds as programs write numbers, `1e-05` too, with or without its unit. */
const SECONDS = /^\d{1,20}(?:\.\d{1,40})?(?:e[+-]?\d{1,3})?s?$/i;

/** `wait=30`: seconds, from 0 to 60. */
export function queryWait(req: FastifyRequest): Duration | undefined {
  const text = queryParameter(req, "wait");
  if (text === undefined) {
    return undefined;
  }
  const seconds = SECONDS.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (!(seconds >= 0 && seconds <= MAX_WAIT_SECONDS)) {
    throw invalid("wait", `must be a number of seconds from 0 to ${MAX_WAIT_SECONDS}`);
  }
  return durationFromMs(seconds * 1000);
}

/** `Prefer: wait=20` (RFC 7240, section 4.3). It is a preference, so an invalid one is no error. */
export function preferredWait(req: FastifyRequest): Duration | undefined {
  const { prefer } = req.headers;
  if (prefer === undefined) {
    return undefined;
  }
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d+)"?/i.exec(String(prefer));
  const seconds = Math.min(Number(match?.[1] ?? 0), MAX_WAIT_SECONDS);
  return seconds > 0 ? durationFromMs(seconds * 1000) : undefined;
}

/** `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header); empty if absent. */
export function idempotencyKey({ headers }: FastifyRequest): string {
  return String(headers["idempotency-key"] ?? "");
}

/** `replay=always`: the key stands for its first task, however that ended. */
export function readReplay(given: GivenParameters): Replay {
  const text = given("replay");
  if (text !== undefined && text !== "always") {
    throw invalid("replay", "must be always, or left out");
  }
  return text === undefined ? Replay.UNSPECIFIED : Replay.ALWAYS;
}

/** The parameters of cancel and retry, from the query or a JSON body; `known` are their names. */
export async function controlRequest(
  req: FastifyRequest,
  known: readonly string[],
): Promise<{ readonly taskId: string; readonly abort: boolean }> {
  const body = await controlBody(req, known);
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

async function controlBody(
  req: FastifyRequest,
  known: readonly string[],
): Promise<{ task_id?: unknown; abort?: unknown }> {
  refuseCharset(req.headers["content-type"] ?? "");
  const data = await readDecoded(req, MAX_CONTROL_BODY_BYTES);
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
  for (const name of Object.keys(body)) {
    if (!known.includes(name)) {
      throw invalid(name, `is an unknown field${proposal(name, known)}`);
    }
  }
  return body;
}

/** A REQUEST_INVALID error about one field. */
export function invalid(field: string, description: string): Error {
  return problem("REQUEST_INVALID", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}

/*
 * The schedule of a submitted task, from the query: `priority=5`; `run_at=` a
 * time, or `delay=30` in seconds from now; `start_by=` a time, or
 * `start_within=60` in seconds from now; `retention=3600`, seconds from its end;
 * `webhook=`, the name of one that hears of its end; `key=`, whose it is; and `tags=a,b`.
 * Times are RFC 3339. The RPC checks their range and converts seconds to times.
 */

/** RFC 3339, whose offset is required. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

/**
 * Longest delay in the headers and fields that schedule a task: above what tasks may ask for,
 * and read without loss.
 */
const MAX_DELAY_SECONDS = 366 * 86_400;

/** Where the parameters of a submit are read, by name: the query, or a header. */
export type GivenParameters = (name: string) => string | undefined;

/** Those of the query. */
export function parametersOf(req: FastifyRequest): GivenParameters {
  return req.url.includes("?") ? (name) => queryParameter(req, name) : () => undefined;
}

/** Sets the fields that are given; throws REQUEST_INVALID, which names the parameter. */
export function readSchedule(given: GivenParameters, message: SubmitTaskRequest): void {
  const priority = given("priority");
  if (priority !== undefined) {
    if (!/^-?\d{1,9}$/.test(priority)) {
      throw invalid("priority", "must be a whole number");
    }
    message.priority = Number(priority);
  }
  const runAt = readTime(given, "run_at");
  if (runAt) {
    message.runAt = runAt;
  }
  const delay = readSeconds(given, "delay");
  if (delay) {
    message.delay = delay;
  }
  const startBy = readTime(given, "start_by");
  if (startBy) {
    message.startBy = startBy;
  }
  const startWithin = readSeconds(given, "start_within");
  if (startWithin) {
    message.startWithin = startWithin;
  }
  const retention = readSeconds(given, "retention");
  if (retention) {
    message.retention = retention;
  }
  const webhook = given("webhook");
  if (webhook !== undefined) {
    message.webhook = webhook;
  }
  const key = given("key");
  if (key !== undefined) {
    message.key = key;
  }
  const tags = given("tags");
  if (tags !== undefined) {
    message.tags = tags.split(",").map((tag) => tag.trim());
  }
}

function readTime(given: GivenParameters, name: string): Timestamp | undefined {
  // An unescaped plus in a query is read as a space.
  const text = given(name)?.replace(" ", "+");
  if (text === undefined) {
    return undefined;
  }
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs) || !isOnCalendar(text)) {
    throw invalid(name, "must be a time that exists, such as 2026-01-31T12:00:00Z");
  }
  return timestampFromMs(timeMs);
}

function readSeconds(given: GivenParameters, name: string): Duration | undefined {
  const text = given(name);
  if (text === undefined) {
    return undefined;
  }
  const seconds = SECONDS.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (!(seconds >= 0 && seconds <= MAX_DELAY_SECONDS)) {
    throw invalid(name, `must be a number of seconds from 0 to ${MAX_DELAY_SECONDS}`);
  }
  return durationFromMs(seconds * 1000);
}

// The body of a call: a form or a file is streamed beside the message, any other body is part of it.

/** How much of a body is read. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** Of a form or a file: how much of it is held in memory. */
  readonly maxHeldBytes: number;
  /** Which setting the limit is, and what to do about it. */
  readonly said: string;
}

/** The bodies of a call that travel outside its messages. */
export function bodiesOf(contextValues: ContextValues): StreamedBodies {
  const bodies: StreamedBodies = {};
  contextValues.set(streamedBodies, bodies);
  return bodies;
}

/** The input of a call whose body is a file, as it is, beside other arguments. */
export function readFile(
  req: FastifyRequest,
  bodies: StreamedBodies,
  { limits, beside }: { readonly limits: BodyLimits; readonly beside: FileBeside },
): { readonly case: "body"; readonly value: HttpBody } {
  const { maxBytes, maxHeldBytes } = limits;
  const contentType = req.headers["content-type"] ?? "application/octet-stream";
  const chunks = new BodyStream(req, { maxBytes });
  const hold = (bytes: number) => req.bodyShare?.hold(bytes);
  hold(Math.min(Number(req.headers["content-length"] ?? maxBytes), maxHeldBytes));
  bodies.request = { contentType, chunks, maxHeldBytes, hold, beside };
  return { case: "body", value: bodyMessage(contentType, NO_BYTES) };
}

/** The input of a call, whose body is in it unless it is put into `bodies`. */
export async function readInput(
  req: FastifyRequest,
  bodies: StreamedBodies,
  { maxBytes, maxHeldBytes, said }: BodyLimits,
): Promise<{ readonly case: "body"; readonly value: HttpBody }> {
  const contentType = req.headers["content-type"] ?? "";
  if (!isForm(req)) {
    try {
      const value = bodyMessage(contentType, await readDecoded(req, maxBytes));
      return { case: "body", value };
    } catch (err) {
      throw toProblem(err).reason === "BODY_TOO_LARGE" ? bodyTooLarge(maxBytes, said) : err;
    }
  }
  const chunks = decodedStream(req, maxBytes);
  const hold = (bytes: number) => req.bodyShare?.hold(bytes);
  bodies.request = { contentType, chunks, maxHeldBytes, hold };
  return { case: "body", value: bodyMessage(contentType, NO_BYTES) };
}

// Accesses of tasks in requests of the data plane: `GET /{endpoint}/events?task_id=…&access=…`.
//
// An access opens the paths that read one task, and no other. It is read only where such a path is
// asked for; elsewhere `access` is a name like any other, which a function may use itself.
//
// A stream that it opened lasts as long as its maker may read the task (see
// `rpc/engine/standing.ts`).

/** The query parameter that holds an access. */
export const ACCESS_PARAMETER = "access";

/** Ends of the paths that read a task. */
const READING = /\/(?:events|stream|status|get)\/?$/;

/** What holds for the caller of an access. */
interface HeldAccess {
  readonly taskId: string;
}

const heldKey = createContextKey<HeldAccess | undefined>(undefined, {
  description: "the access of a task that the call came with",
});

/** Binds a call to the access that it came with. */
export function holdTo(values: ContextValues, held: HeldAccess): ContextValues {
  return values.set(heldKey, held);
}

/** Whether a request reads a task by its access, so that nobody may keep its answer or learn its URL. */
export function hasAccess(req: FastifyRequest): boolean {
  // First, because hardly any request has one.
  if (givenAccess(req) === undefined) {
    return false;
  }
  const { method, url } = req;
  return (method === "GET" || method === "HEAD") && READING.test(url.split("?", 1)[0] ?? "");
}

/** What stands in the place of an access, wherever it is. */
export function givenAccess({ url, query }: FastifyRequest): unknown {
  return url.includes("?")
    ? (query as Readonly<Record<string, unknown>>)[ACCESS_PARAMETER]
    : undefined;
}

/** The access of a request that has one. Errors: REQUEST_INVALID. */
export function accessOf(req: FastifyRequest): string {
  return queryParameter(req, ACCESS_PARAMETER) ?? "";
}

/** The problem of a request that an access does not open. */
export function accessDoesNotOpen({ url, method }: FastifyRequest): Error {
  return problem(
    "ACCESS_DENIED",
    `the access of a task does not open ${method} ${url.split("?", 1)[0]}: it opens GET of /events, /stream, /status and /get of its task; send a token in the header Authorization`,
  );
}

/** Refuses what the access of a call does not open. `reads`: the route reads a task. */
export function checkAccess(
  req: FastifyRequest,
  values: ContextValues,
  { reads }: { readonly reads: boolean },
): void {
  const held = values.get(heldKey);
  if (held === undefined) {
    return;
  }
  if (!reads) {
    throw accessDoesNotOpen(req);
  }
  if (queryTaskId(req) !== held.taskId) {
    throw problem(
      "ACCESS_DENIED",
      "the access is for another task: the task_id of the query has to be that of its own",
    );
  }
}

/** Neither is an answer kept, nor is its URL told to what it links to. */
export function keepToCaller(reply: FastifyReply): void {
  reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
}

/** Takes from what a function said of its result what would have others keep or learn it. */
export function withoutSharing(values: ContextValues, bodies: StreamedBodies): void {
  const { head } = bodies;
  if (head && values.get(heldKey) !== undefined) {
    const headers = head.headers.filter(([name]) => !SHARING.has(name));
    bodies.head = { ...head, headers };
  }
}

const SHARING: ReadonlySet<string> = new Set(["cache-control", "referrer-policy"]);
