/** Waits for a roll-out: until a revision serves or has failed. */
import { type Deployment, DeploymentStatus } from "../../client/index.ts";
import type { CommandRun } from "../command.ts";
import { isPassing } from "../describe.ts";
import { CliError } from "../failure.ts";
import { plain } from "../plain.ts";

/**
 * How long `deploy` waits for a revision: longer than a node waits for a service to start,
 * with all its workers one after another.
 */
const ROLLOUT_TIMEOUT_MS = 15 * 60_000;
/**
 * Interval at which `deploy` asks for the state of a roll-out: from the first it grows by half
 * up to the longest.
 */
const ROLLOUT_POLL_INTERVAL_MS = { first: 250, longest: 2_000 };
/** Polls of a roll-out in a row that may fail: the platform may be updated just now. */
const MAX_FAILED_ROLLOUT_POLLS = 15;
/**
 * How long a revision that serves may stay degraded before `deploy` ends: one node of several
 * is not well, or a worker crashes.
 */
const ROLLOUT_DEGRADED_MS = 30_000;
/** Last lines of the log that `deploy` shows when a roll-out has failed. */
const ROLLOUT_LOG_LINES = 20;

interface RolloutWaitOptions {
  readonly name: string;
  /** The revision to wait for. */
  readonly revision: number;
  /** The version of the deployment that nodes must have taken up. */
  readonly version: number;
  /** Called with each state of the deployment. */
  readonly onState: (deployment: Deployment) => void;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the deployment when the revision serves (also when it stays
 * degraded, or waits for workers that join) or the deployment is stopped. Rejects with the reason when the
 * revision cannot serve.
 */
export async function waitForRollout(
  call: CommandRun,
  options: RolloutWaitOptions,
): Promise<Deployment> {
  const { name, revision, onState, signal } = options;
  const endMs = call.clock.now() + ROLLOUT_TIMEOUT_MS;
  let degradedMs: number | undefined;
  let lost = 0;
  for (
    let pauseMs = ROLLOUT_POLL_INTERVAL_MS.first;
    ;
    pauseMs = Math.min(pauseMs * 1.5, ROLLOUT_POLL_INTERVAL_MS.longest)
  ) {
    try {
      const deployment = await getDeployment(call, name, signal);
      lost = 0;
      onState(deployment);
      if (await isDone(call, deployment, options)) {
        return deployment;
      }
      const nowMs = call.clock.now();
      degradedMs = isDegraded(deployment, revision) ? (degradedMs ?? nowMs) : undefined;
      if (degradedMs !== undefined && nowMs > degradedMs + ROLLOUT_DEGRADED_MS) {
        return deployment;
      }
      if (nowMs > endMs) {
        throw new CliError(
          `revision ${revision} is not ready after ${ROLLOUT_TIMEOUT_MS / 60_000} minutes: ${plain(deployment.statusReason)}`,
          { hint: `its roll-out goes on: tessera deployment get ${name}` },
        );
      }
    } catch (err) {
      signal.throwIfAborted();
      lost += 1;
      if (!isPassing(err) || lost > MAX_FAILED_ROLLOUT_POLLS) {
        throw err;
      }
    }
    await call.clock.wait(pauseMs, signal);
  }
}

async function getDeployment(
  call: CommandRun,
  name: string,
  signal: AbortSignal,
): Promise<Deployment> {
  const { organization } = call;
  return await call.client.deployments.getDeployment(
    { organization, deployment: name },
    { signal },
  );
}

async function isDone(
  call: CommandRun,
  deployment: Deployment,
  { name, revision, version, signal }: RolloutWaitOptions,
): Promise<boolean> {
  const { status, statusReason, targetRevision, revision: serving, workers } = deployment;
  if (targetRevision !== revision) {
    throw new CliError(
      `revision ${targetRevision} has taken the place of revision ${revision} before that was ready`,
      { hint: `tessera deployment revisions ${name} shows who deployed it` },
    );
  }
  if (deployment.observedVersion < version && status !== DeploymentStatus.STOPPED) {
    // What is reported is of before the change.
    return false;
  }
  switch (status) {
    case DeploymentStatus.READY:
      return serving === revision;
    case DeploymentStatus.DEGRADED:
      // Its workers join from other machines, which nobody can wait for.
      return serving === revision && workers === 0;
    case DeploymentStatus.STOPPED:
      return true;
    case DeploymentStatus.FAILED:
      throw await failure(call, { name, revision, statusReason, serving, signal });
    default:
      return false;
  }
}

function isDegraded({ status, revision: serving }: Deployment, revision: number): boolean {
  return status === DeploymentStatus.DEGRADED && serving === revision;
}

interface Failed {
  readonly name: string;
  readonly revision: number;
  readonly statusReason: string;
  readonly serving: number;
  readonly signal: AbortSignal;
}

async function failure(call: CommandRun, failed: Failed): Promise<CliError> {
  const { name, revision, statusReason, serving } = failed;
  const reason = statusReason
    .split("\n")
    .map(plain)
    .filter((line) => line !== "");
  // A node's reason usually includes the worker's output; otherwise the log is
  // read.
  const lines = reason.length > 1 ? reason.slice(1) : await lastLines(call, failed);
  const still =
    serving > 0 && serving !== revision
      ? `revision ${serving} goes on serving`
      : "nothing serves now";
  return new CliError(
    [`${name} could not be rolled out: ${reason[0] ?? "no reason is known"}`, ...lines].join(
      "\n  ",
    ),
    { hint: `${still}; tessera deployment logs ${name} shows all that it wrote` },
  );
}

/** The last log lines of the revision's workers; empty when they cannot be read. */
async function lastLines(call: CommandRun, { name, revision, signal }: Failed): Promise<string[]> {
  const { organization } = call;
  const lines: string[] = [];
  try {
    const request = { organization, deployment: name, tail: ROLLOUT_LOG_LINES, revision };
    for await (const line of call.client.deployments.watchDeploymentLogs(request, { signal })) {
      // What nodes wrote about them is the reason that is known.
      if (line.stream !== "node") {
        lines.push(plain(line.text));
      }
    }
  } catch {
    // The reason is already known and matters more.
  }
  return lines;
}
