/**
 * When a submitted task may start, from the query: `priority=5`; `run_at=` a
 * time, or `delay=30` in seconds from now; `start_by=` a time, or
 * `start_within=60` in seconds from now. Times are RFC 3339. What they may be
 * is checked by the RPC, which also makes times of the seconds.
 */
import {
  type Duration,
  durationFromMs,
  type Timestamp,
  timestampFromMs,
} from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import type { SubmitTaskRequest } from "../../../gen/tessera/v1/task_pb.js";
import { invalid, queryParameter } from "./request.ts";

/** RFC 3339, with the offset that tells which moment is meant. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

const MAX_SECONDS = 366 * 86_400;

/** Sets the fields that the query gives; throws REQUEST_INVALID naming the parameter. */
export function readSchedule(req: FastifyRequest, message: SubmitTaskRequest): void {
  if (!req.url.includes("?")) {
    return;
  }
  const priority = queryParameter(req, "priority");
  if (priority !== undefined) {
    if (!/^-?\d{1,9}$/.test(priority)) {
      throw invalid("priority", "must be a whole number");
    }
    message.priority = Number(priority);
  }
  const runAt = readTime(req, "run_at");
  if (runAt) {
    message.runAt = runAt;
  }
  const delay = readSeconds(req, "delay");
  if (delay) {
    message.delay = delay;
  }
  const startBy = readTime(req, "start_by");
  if (startBy) {
    message.startBy = startBy;
  }
  const startWithin = readSeconds(req, "start_within");
  if (startWithin) {
    message.startWithin = startWithin;
  }
}

function readTime(req: FastifyRequest, name: string): Timestamp | undefined {
  // In a query a plus that was not escaped reads as a space.
  const text = queryParameter(req, name)?.replace(" ", "+");
  if (text === undefined) {
    return undefined;
  }
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs)) {
    throw invalid(name, "must be a time such as 2026-01-31T12:00:00Z");
  }
  return timestampFromMs(timeMs);
}

function readSeconds(req: FastifyRequest, name: string): Duration | undefined {
  const text = queryParameter(req, name);
  if (text === undefined) {
    return undefined;
  }
  const seconds = Number(/^(\d+(?:\.\d+)?)s?$/.exec(text)?.[1] ?? Number.NaN);
  if (!(seconds >= 0 && seconds <= MAX_SECONDS)) {
    throw invalid(name, `must be a number of seconds from 0 to ${MAX_SECONDS}`);
  }
  return durationFromMs(Math.round(seconds * 1000));
}
