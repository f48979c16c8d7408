/**
 * `tessera deployment watch`: the deployments as they are, and each change. Following survives
 * broken connections: what is known already is not shown again.
 */
import { create, equals } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  type Deployment,
  DeploymentSchema,
  type WatchDeploymentsResponse,
  WatchDeploymentsResponseSchema,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand } from "../command.ts";
import { jsonText } from "../output.ts";
import { plain } from "../plain.ts";
import { followStream, type StreamProgress } from "../reconnect.ts";
import { revisionText, statusText, workersText } from "./view.ts";

export function watchCommand(actions: CloudActions): Command {
  return callCommand("watch", actions, {
    description:
      "Show the deployments, or one, and each change of their state, until Ctrl-C or the end of the one.",
    arguments: [["[name]", "only this deployment"]],
    examples: [
      "tessera deployment watch",
      "tessera deployment watch summarizer",
      "tessera deployment watch --output json | jq '.deployments[].status'",
    ],
    run: async (call, _flags, [name = ""]) => {
      using interruption = call.terminal.streams.interruption();
      const { signal } = interruption;
      const watching = new Watching(call, name);
      await followStream(call, signal, (progress) => watching.read(progress));
    },
  });
}

class Watching {
  readonly #call: CommandRun;
  readonly #name: string;
  /** What was shown last, by id. */
  #known = new Map<string, Deployment>();

  constructor(call: CommandRun, name: string) {
    this.#call = call;
    this.#name = name;
  }

  /** Follows until the stream ends; true when the one deployment was deleted. */
  async read({ signal, onHeader, onMessage }: StreamProgress): Promise<boolean> {
    const { client, organization } = this.#call;
    const changes = client.deployments.watchDeployments(
      { organization, deployment: this.#name },
      { signal, timeoutMs: 0, onHeader },
    );
    let isFirst = true;
    for await (const message of changes) {
      onMessage();
      this.#take(message, isFirst);
      isFirst = false;
    }
    return this.#name !== "" && this.#known.size === 0;
  }

  /** Shows what is new. The first message of a stream has all that there is. */
  #take(message: WatchDeploymentsResponse, hasAll: boolean): void {
    const known = this.#known;
    const there = new Set(message.deployments.map(({ deploymentId }) => deploymentId));
    const isGone = hasAll
      ? (id: string) => !there.has(id)
      : (id: string) => message.removedDeploymentIds.includes(id);
    const removed = [...known.values()].filter(({ deploymentId }) => isGone(deploymentId));
    const changed = message.deployments.filter((one) => {
      const before = known.get(one.deploymentId);
      return before === undefined || !equals(DeploymentSchema, before, one);
    });
    for (const { deploymentId } of removed) {
      known.delete(deploymentId);
    }
    for (const one of changed) {
      known.set(one.deploymentId, one);
    }
    if (changed.length + removed.length > 0) {
      this.#show(changed, removed);
    }
  }

  #show(changed: readonly Deployment[], removed: readonly Deployment[]): void {
    const { terminal, output, clock } = this.#call;
    if (output === "json") {
      // One line of JSON per message, as the stream of the REST interface has it.
      const message = create(WatchDeploymentsResponseSchema, {
        deployments: [...changed],
        removedDeploymentIds: removed.map(({ deploymentId }) => deploymentId),
      });
      const text = jsonText(WatchDeploymentsResponseSchema, message);
      terminal.answer(JSON.stringify(JSON.parse(text)));
      return;
    }
    const at = `${new Date(clock.now()).toISOString().slice(0, 19).replace("T", " ")}Z`;
    for (const { name } of removed) {
      terminal.answer(`${at} ${name} deleted`);
    }
    for (const one of changed) {
      terminal.answer(`${at} ${stateText(one)}`);
    }
  }
}

/** `summarizer degraded, revision 3, 1 of 2 workers on 1 node: why`. */
function stateText(deployment: Deployment): string {
  const { name, status, statusReason, nodes } = deployment;
  const where = nodes === 0 ? "" : ` on ${nodes} ${nodes === 1 ? "node" : "nodes"}`;
  const [why = ""] = statusReason.split("\n").map(plain);
  return [
    `${name} ${statusText(status)}`,
    `revision ${revisionText(deployment)}`,
    `${workersText(deployment)} workers${where}${why === "" ? "" : `: ${why}`}`,
  ].join(", ");
}
