/** Which lines of a deployment's log a caller wants. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { WatchDeploymentLogsRequest } from "../../../../gen/tessera/v1/deployment_pb.js";
import type { LineLevel, LogLine } from "../../../storage/hosting/logs.ts";
import { invalidField } from "../violations.ts";

const SEVERITY: Readonly<Record<LineLevel, number>> = { info: 0, warn: 1, error: 2 };

export type LogFilter = (line: LogLine) => boolean;

/**
 * The filter of a request; undefined if it wants all lines. Errors: REQUEST_INVALID for times
 * that fit nothing.
 */
export function logFilterOf(req: WatchDeploymentLogsRequest): LogFilter | undefined {
  const { search, minLevel, taskId, startTime, endTime, revision } = req;
  const startMs = startTime ? timestampMs(startTime) : Number.NEGATIVE_INFINITY;
  const endMs = endTime ? timestampMs(endTime) : Number.POSITIVE_INFINITY;
  if (endTime !== undefined && req.follow) {
    throw invalidField("end_time", "new lines are later: leave it out, or do not follow");
  }
  if (endMs <= startMs) {
    throw invalidField("end_time", "has to be after start_time");
  }
  const text = search.toLowerCase();
  const least = SEVERITY[(minLevel || "info") as LineLevel];
  const takesAll =
    text === "" &&
    least === 0 &&
    taskId === "" &&
    revision === 0 &&
    startTime === undefined &&
    endTime === undefined;
  return takesAll
    ? undefined
    : (line) =>
        line.timeMs >= startMs &&
        line.timeMs < endMs &&
        SEVERITY[line.level] >= least &&
        (taskId === "" || line.taskId === taskId) &&
        (revision === 0 || line.revision === revision) &&
        (text === "" || line.text.toLowerCase().includes(text));
}
