/**
 * Placement: which workers run a deployment. Its setting `place` chooses between those that
 * nodes start and those that join from other machines, and `requires` names labels that the
 * machine of either must have. A node has the labels that it was started with, a worker on
 * another machine those with which it registers.
 *
 * A node that may not start workers of a deployment serves it all the same: it takes its
 * tasks, and its calls as soon as a worker has joined this node.
 */
import { type Problem, problem } from "../errors.ts";
import type {
  DeploymentRecord,
  DeploymentSettings,
  MachineLabels,
} from "../storage/accounts/organizations.ts";

/** The value of a required label that any value satisfies. */
const ANY_VALUE = "*";

/** The settings that choose the workers of a deployment. */
export type Placement = Pick<DeploymentSettings, "place" | "requires">;

interface Placed extends Pick<DeploymentRecord, "organization" | "name"> {
  readonly settings: Placement;
}

/**
 * Returns the required labels that a machine lacks, sorted: `gpu=h200`, or `gpu` where any
 * value would do. Empty: it has all.
 */
export function missingLabels(requires: MachineLabels, labels: MachineLabels): string[] {
  return Object.entries(requires)
    .filter(([name, value]) => {
      const own = Object.hasOwn(labels, name) ? labels[name] : undefined;
      return own === undefined || (value !== ANY_VALUE && value !== own);
    })
    .map(([name, value]) => (value === ANY_VALUE ? name : `${name}=${value}`))
    .sort();
}

/**
 * Why a worker on a machine with these labels may not join a deployment: NO_MATCHING_WORKER,
 * which names the missing labels. Undefined: it may.
 */
export function joinRefusal(deployment: Placed, labels: MachineLabels): Problem | undefined {
  const { organization, name, settings } = deployment;
  const { place, requires } = settings;
  if (place === "local") {
    const message = `deployment ${organization}/${name} runs in workers of the nodes only: tessera deployment update ${name} --place any`;
    return problem("NO_MATCHING_WORKER", message);
  }
  const missing = missingLabels(requires, labels);
  if (missing.length === 0) {
    return undefined;
  }
  const message = `deployment ${organization}/${name} requires ${labelWord(missing)} ${missing.join(", ")}, which the worker does not have: join it with ${labelFlags(requires, missing)}`;
  return problem("NO_MATCHING_WORKER", message, { metadata: { labels: missing.join(",") } });
}

export interface NodeMatch {
  /** The labels of the node. */
  readonly labels: MachineLabels;
  /** False for an artifact of kind `remote`, whose code is on other machines. */
  readonly hasCode: boolean;
}

/**
 * What a deployment waits for whose workers this node may not start, for people. Undefined:
 * it starts them.
 */
export function awaitedWorker(
  { name, settings: { place, requires } }: Placed,
  { labels, hasCode }: NodeMatch,
): string | undefined {
  const missing = missingLabels(requires, labels);
  if (place !== "remote" && hasCode && missing.length === 0) {
    return undefined;
  }
  if (place === "local") {
    return hasCode
      ? `a node with ${labelWord(missing)} ${missing.join(", ")}: tessera start ${labelFlags(requires, missing)}`
      : `a worker that brings its code and joins, which its place \`local\` forbids: tessera deployment update ${name} --place any`;
  }
  const all = missingLabels(requires, {});
  const needed = all.length === 0 ? "" : ` with ${labelWord(all)} ${all.join(", ")}`;
  if (!hasCode) {
    return `a worker${needed} that brings its code and joins as deployment ${name}`;
  }
  const flags = [`--deployment ${name}`, ...(all.length > 0 ? [labelFlags(requires, all)] : [])];
  return `a worker${needed} that joins: tessera worker --join URL ${flags.join(" ")}`;
}

function labelWord(labels: readonly string[]): string {
  return labels.length === 1 ? "the label" : "the labels";
}

/** `--label gpu=VALUE --label zone=b`. */
function labelFlags(requires: MachineLabels, names: readonly string[]): string {
  return names
    .map((label) => {
      const [name = ""] = label.split("=", 1);
      return `--label ${name}=${requires[name] === ANY_VALUE ? "VALUE" : requires[name]}`;
    })
    .join(" ");
}
