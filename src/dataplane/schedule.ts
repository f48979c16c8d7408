/**
 * When a submitted task may start, from the query: `priority=5`; `run_at=` a
 * time, or `delay=30` in seconds from now; `start_by=` a time, or
 * `start_within=60` in seconds from now. Times are RFC 3339. What they may be
 * is checked by the RPC.
 */
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import type { SubmitTaskRequest } from "../../gen/tessera/v1/task_pb.js";
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
  const runAt = readTime(req, { time: "run_at", seconds: "delay" });
  if (runAt) {
    message.runAt = runAt;
  }
  const startBy = readTime(req, { time: "start_by", seconds: "start_within" });
  if (startBy) {
    message.startBy = startBy;
  }
}

function readTime(
  req: FastifyRequest,
  names: { readonly time: string; readonly seconds: string },
): Timestamp | undefined {
  const time = queryParameter(req, names.time);
  const seconds = queryParameter(req, names.seconds);
  if (time !== undefined && seconds !== undefined) {
    throw invalid(names.seconds, `cannot be given together with ${names.time}`);
  }
  if (time !== undefined) {
    // In a query a plus that was not escaped reads as a space.
    const text = time.replace(" ", "+");
    const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
    if (Number.isNaN(timeMs)) {
      throw invalid(names.time, "must be a time such as 2026-01-31T12:00:00Z");
    }
    return timestampFromMs(timeMs);
  }
  if (seconds === undefined) {
    return undefined;
  }
  const count = Number(/^(\d+(?:\.\d+)?)s?$/.exec(seconds)?.[1] ?? Number.NaN);
  if (!(count >= 0 && count <= MAX_SECONDS)) {
    throw invalid(names.seconds, `must be a number of seconds from 0 to ${MAX_SECONDS}`);
  }
  return timestampFromMs(Date.now() + Math.round(count * 1000));
}
