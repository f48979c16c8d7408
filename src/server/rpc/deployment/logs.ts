/** WatchDeploymentLogs: what was written last, and what comes. */
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  DeploymentLogLineSchema,
  type DeploymentService,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { problem } from "../../../errors.ts";
import type { Organizations } from "../../../storage/accounts/organizations.ts";
import type { DeploymentKey } from "../../../storage/hosting/deployment-key.ts";
import type { LogLine, Logs } from "../../../storage/hosting/logs.ts";
import { memberOf } from "../engine/caller.ts";
import { toLogMessage } from "./messages.ts";
import { findDeployment } from "./refusals.ts";

/** Lines come from all nodes, so the storage is asked; seldom enough to cost little. */
const LOOK_EVERY_MS = 500;

/** Lines that are read at once. */
const PAGE = 500;

const DEFAULT_TAIL = 100;

/** Callers that may follow logs on this node at a time. */
const MAX_FOLLOWING = 200;

/** Looks that find nothing before it is made sure that the deployment is still there. */
const LOOKS_PER_CHECK = 10;

export interface DeploymentLogsOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<Logs, "readLogs">;
}

type WatchDeploymentLogs = ServiceImpl<typeof DeploymentService>["watchDeploymentLogs"];

export function watchDeploymentLogs({
  accounts,
  hosting,
}: DeploymentLogsOptions): WatchDeploymentLogs {
  let following = 0;
  return async function* (req, ctx) {
    const member = memberOf(ctx);
    const { organizationId, deploymentId } = await findDeployment(accounts, member, req.name);
    const key = { organizationId, deploymentId };
    if (following >= MAX_FOLLOWING) {
      const message = `${MAX_FOLLOWING} callers follow logs here, which is the limit: try again`;
      throw problem("TOO_MANY_WAITING", message, { retryAfterMs: 5_000 });
    }
    following += 1;
    try {
      const begin = Number(req.afterSequence);
      let after = begin > 0 ? begin : yield* lastLines(hosting, key, req.tail ?? DEFAULT_TAIL);
      let looks = 0;
      while (!ctx.signal.aborted) {
        const { lines } = await hosting.readLogs({ ...key, afterSequence: after, limit: PAGE });
        yield* lines.map(toMessage);
        after = lines.at(-1)?.sequence ?? after;
        if (lines.length === PAGE) {
          continue;
        }
        looks = lines.length > 0 ? 0 : looks + 1;
        if (!req.follow || (looks % LOOKS_PER_CHECK === 0 && looks > 0 && !(await isThere()))) {
          return;
        }
        await sleep(LOOK_EVERY_MS, undefined, { signal: ctx.signal }).catch(() => undefined);
      }
    } finally {
      following -= 1;
    }

    async function isThere(): Promise<boolean> {
      const found = await accounts.findDeployment({ organizationId, name: req.name });
      return found?.deploymentId === deploymentId;
    }
  };
}

/** The newest lines; returns the sequence after which the others come. */
async function* lastLines(
  hosting: Pick<Logs, "readLogs">,
  key: DeploymentKey,
  tail: number,
): AsyncGenerator<ReturnType<typeof toMessage>, number, undefined> {
  // One line at least, for its sequence.
  const { lines, lastSequence } = await hosting.readLogs({ ...key, limit: Math.max(tail, 1) });
  if (tail > 0) {
    yield* lines.map(toMessage);
  }
  return lastSequence;
}

function toMessage(line: LogLine) {
  return create(DeploymentLogLineSchema, toLogMessage(line));
}
