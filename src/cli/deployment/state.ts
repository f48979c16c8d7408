/** `tessera deployment stop` and `start`, with waiting for the roll-out, and `pause` and `resume`. */
import type { Command } from "commander";
import type { Deployment } from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { ProgressLine } from "../progress.ts";
import { waitForRollout } from "./rollout.ts";
import { NAME, showDeployment, statusText } from "./view.ts";

export interface WaitFlags {
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

export const NO_WAIT = option("--no-wait", "do not wait until it is ready");

export function stopCommand(actions: CloudActions): Command {
  return callCommand("stop", actions, {
    description:
      "Stop a deployment once what runs is finished. Tasks stay queued; calls are refused.",
    arguments: [NAME],
    examples: ["tessera deployment stop summarizer"],
    run: async (call, _flags, [name = ""]) => {
      const { organization } = call;
      const stopped = await call.client.deployments.stopDeployment({
        organization,
        deployment: name,
      });
      showDeployment(call, stopped);
    },
  });
}

export function startCommand(actions: CloudActions): Command {
  return callCommand<WaitFlags>("start", actions, {
    description: "Start a deployment that was stopped.",
    arguments: [NAME],
    options: [NO_WAIT],
    examples: ["tessera deployment start summarizer"],
    run: async (call, { wait }, [name = ""]) => {
      const { organization } = call;
      const started = await call.client.deployments.startDeployment({
        organization,
        deployment: name,
      });
      await finishRollout(call, started, { wait });
    },
  });
}

const ENDPOINT = ["<endpoint>", "a task endpoint, or the path of a mounted server"] as const;

export function pauseCommand(actions: CloudActions): Command {
  return callCommand("pause", actions, {
    description: "Start no more tasks of an endpoint. Calls are taken and wait; what runs goes on.",
    arguments: [NAME, ENDPOINT],
    examples: ["tessera deployment pause summarizer summarize"],
    run: async (call, _flags, [deployment = "", endpoint = ""]) => {
      const { organization } = call;
      const named = { organization, deployment, endpoint };
      showDeployment(call, await call.client.deployments.pauseEndpoint(named));
    },
  });
}

export function resumeCommand(actions: CloudActions): Command {
  return callCommand("resume", actions, {
    description: "Start the tasks of an endpoint again that was paused.",
    arguments: [NAME, ENDPOINT],
    examples: ["tessera deployment resume summarizer summarize"],
    run: async (call, _flags, [deployment = "", endpoint = ""]) => {
      const { organization } = call;
      const named = { organization, deployment, endpoint };
      showDeployment(call, await call.client.deployments.resumeEndpoint(named));
    },
  });
}

/** Waits until the target revision serves, unless told not to, and shows the deployment. */
export async function finishRollout(
  call: CommandRun,
  changed: Deployment,
  { wait }: { readonly wait: boolean },
): Promise<void> {
  if (!wait) {
    showDeployment(call, changed);
    return;
  }
  const { streams } = call.terminal;
  const { name, targetRevision: revision, version } = changed;
  using interruption = streams.interruption();
  const { signal } = interruption;
  const progress = new ProgressLine(streams, { quiet: call.output === "json" });
  try {
    const onState = ({ status }: Deployment): void =>
      progress.step(`revision ${revision}: ${statusText(status)}`);
    const ready = await waitForRollout(call, { name, revision, version, onState, signal });
    progress.end();
    showDeployment(call, ready);
  } catch (err) {
    progress.end();
    if (signal.aborted) {
      call.terminal.say(`The roll-out goes on: tessera deployment get ${name}`);
    }
    throw err;
  }
}
