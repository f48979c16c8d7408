/** WatchDeploymentLogs: the last lines of a deployment's log, and new ones as they are written. */
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  DeploymentLogLineSchema,
  type DeploymentService,
  type WatchDeploymentLogsRequest,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { SharedBound } from "../../collections/shared-bound.ts";
import { problem } from "../../errors.ts";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { DeploymentKey } from "../../storage/hosting/deployment-key.ts";
import type { LineLevel, LogLine, Logs } from "../../storage/hosting/logs.ts";
import { invalidField } from "../violations.ts";
import { toLogMessage } from "./messages.ts";
import { findDeployment } from "./refusals.ts";

/**
 * Interval at which new log lines are read for followers: lines come from all nodes, so the
 * storage is asked.
 */
const LOGS_POLL_INTERVAL_MS = 500;

/** Log lines read at once. */
const MAX_LOG_LINES_PER_READ = 500;

/** Last log lines that a reader gets unless it names another number. */
const DEFAULT_TAIL_LINES = 100;

/** Callers that may follow logs on this node at once. */
const MAX_LOG_FOLLOWERS = 200;

/** Reads of a followed log after which the node checks that the deployment still exists. */
const MAX_READS_BETWEEN_CHECKS = 10;

export interface DeploymentLogsOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<Logs, "readLogs">;
}

type WatchDeploymentLogs = ServiceImpl<typeof DeploymentService>["watchDeploymentLogs"];

/** The implementation of WatchDeploymentLogs. */
export function watchDeploymentLogs({
  accounts,
  hosting,
}: DeploymentLogsOptions): WatchDeploymentLogs {
  const followers = new SharedBound(MAX_LOG_FOLLOWERS);
  return async function* (req, ctx) {
    const member = memberOf(ctx);
    const { organizationId, deploymentId } = await findDeployment(accounts, member, req.deployment);
    const key = { organizationId, deploymentId };
    const filter = logFilterOf(req);
    if (!followers.take(organizationId)) {
      const message = `no more callers can follow logs here (${followers.refusal(organizationId)}): try again`;
      throw problem("TOO_MANY_WAITING", message, { retryAfterMs: 5_000 });
    }
    try {
      const begin = Number(req.afterSequence);
      let after =
        begin > 0
          ? begin
          : yield* lastLines(hosting, key, { tail: req.tail ?? DEFAULT_TAIL_LINES, filter });
      let looks = 0;
      while (!ctx.signal.aborted) {
        const { lines } = await hosting.readLogs({
          ...key,
          afterSequence: after,
          limit: MAX_LOG_LINES_PER_READ,
        });
        yield* wanted(lines, filter);
        after = lines.at(-1)?.sequence ?? after;
        if (lines.length === MAX_LOG_LINES_PER_READ) {
          continue;
        }
        looks = lines.length > 0 ? 0 : looks + 1;
        if (
          !req.follow ||
          (looks % MAX_READS_BETWEEN_CHECKS === 0 && looks > 0 && !(await isThere()))
        ) {
          return;
        }
        await sleep(LOGS_POLL_INTERVAL_MS, undefined, { signal: ctx.signal }).catch(
          () => undefined,
        );
      }
    } finally {
      followers.give(organizationId);
    }

    async function isThere(): Promise<boolean> {
      const found = await accounts.findDeployment({ organizationId, name: req.deployment });
      return found?.deploymentId === deploymentId;
    }
  };
}

/** Yields the newest lines; returns the sequence after which new lines follow. */
async function* lastLines(
  hosting: Pick<Logs, "readLogs">,
  key: DeploymentKey,
  { tail, filter }: { readonly tail: number; readonly filter: LogFilter | undefined },
): AsyncGenerator<ReturnType<typeof toMessage>, number, undefined> {
  if (filter !== undefined && tail > 0) {
    return yield* lastWanted(hosting, key, { tail, filter });
  }
  // At least one line, for its sequence.
  const { lines, lastSequence } = await hosting.readLogs({ ...key, limit: Math.max(tail, 1) });
  if (tail > 0) {
    yield* lines.map(toMessage);
  }
  return lastSequence;
}

/** The same of the lines that a filter leaves: all that are kept are looked at. */
async function* lastWanted(
  hosting: Pick<Logs, "readLogs">,
  key: DeploymentKey,
  { tail, filter }: { readonly tail: number; readonly filter: LogFilter },
): AsyncGenerator<ReturnType<typeof toMessage>, number, undefined> {
  let found: LogLine[] = [];
  let after = 0;
  for (;;) {
    const query = { ...key, afterSequence: after, limit: MAX_LOG_LINES_PER_READ };
    const { lines, lastSequence } = await hosting.readLogs(query);
    found = [...found, ...lines.filter(filter)].slice(-tail);
    after = lines.at(-1)?.sequence ?? lastSequence;
    if (lines.length < MAX_LOG_LINES_PER_READ) {
      yield* found.map(toMessage);
      return after;
    }
  }
}

const wanted = (lines: readonly LogLine[], filter: LogFilter | undefined) =>
  (filter === undefined ? lines : lines.filter(filter)).map(toMessage);

function toMessage(line: LogLine) {
  return create(DeploymentLogLineSchema, toLogMessage(line));
}

const SEVERITY: Readonly<Record<LineLevel, number>> = { info: 0, warn: 1, error: 2 };

/** Whether a caller wants a line of a deployment's log. */
type LogFilter = (line: LogLine) => boolean;

/**
 * The filter of a request; undefined if it wants all lines. Errors: REQUEST_INVALID for times
 * that fit nothing.
 */
function logFilterOf(req: WatchDeploymentLogsRequest): LogFilter | undefined {
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
