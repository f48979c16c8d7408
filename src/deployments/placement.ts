/**
 * Placement: which workers run an endpoint of a deployment. `place` chooses between those that
 * nodes start and those that join from other machines, and `requires` names labels that the
 * machine of either must have. A node has the labels that it was started with, a worker on
 * another machine those with which it registers.
 *
 * Three may say something: the service, each of its endpoints, and the deployment's settings.
 * Required labels add up. Where two name the same label, and for the place, the endpoint goes
 * before its service, and the settings go before both; the place `any` of the settings, which
 * is their default, says nothing.
 *
 * A machine also needs the GPUs that the deployment says, or else its service (`gpus`,
 * `gpuMemoryMib`): as many as there are on it, whatever has them now.
 *
 * A worker runs the endpoints whose placement its machine fits, and has no slots for the
 * others. What a node may run is decided when it prepares a revision, and what a worker on
 * another machine may run when it registers; a change of the settings rolls out anew, so no
 * call asks again. A node that may not start workers for an endpoint, or for none of them,
 * serves it all the same: it takes its tasks, and its calls as soon as a worker has joined this
 * node. So does a node whose machine is drained: it may start workers for none.
 */
import { type Problem, problem } from "../errors.ts";
import {
  type GpuNeed,
  gpuNeedText,
  gpusText,
  type MachineGpu,
  mostGpus,
} from "../pool/gpus/ledger.ts";
import type { Awaited } from "../pool/worker-options.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { PlacementManifest } from "../protocol/placement.ts";
import { takersOf } from "../service/mounts.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { DeploymentSettings, MachineLabels } from "../storage/deployment-settings.ts";

const MEBIBYTE = 1024 ** 2;

/** The value of a required label that any value satisfies. */
const ANY_VALUE = "*";

/** What chooses the workers: of a deployment's settings, or of an endpoint by all that is said. */
export type Placement = Pick<DeploymentSettings, "place" | "requires">;

/** What a deployment says of GPUs. */
type GpuSettings = Partial<Pick<DeploymentSettings, "gpus" | "gpuMemoryMib">>;

/** A deployment, as far as it decides on placement. */
export interface Placed extends Pick<DeploymentRecord, "organization" | "name"> {
  readonly settings: Placement & GpuSettings;
}

type PlacedService = Pick<ServiceManifest, "endpoints" | "mounts" | keyof PlacementManifest> &
  GpuSettings;

/** What each worker takes of GPUs: as the deployment says, or else the code; undefined: nothing. */
export function gpuNeedOf(settings: GpuSettings, service: GpuSettings): GpuNeed | undefined {
  const isSaid = (settings.gpus ?? 0) > 0 || (settings.gpuMemoryMib ?? 0) > 0;
  const { gpus = 0, gpuMemoryMib = 0 } = isSaid ? settings : service;
  return gpus === 0 && gpuMemoryMib === 0
    ? undefined
    : {
        count: Math.max(1, gpus),
        ...(gpus > 0 && gpus < 1 && { part: gpus }),
        ...(gpuMemoryMib > 0 && { memoryBytes: gpuMemoryMib * MEBIBYTE }),
      };
}

/** What a worker takes that runs these endpoints. Where some require the label `gpu`, no others need GPUs. */
export function gpuNeedOn(
  settings: Placement & GpuSettings,
  service: PlacedService,
  runs: (endpoint: string) => boolean,
): GpuNeed | undefined {
  const requiresGpu = (endpoint: PlacementManifest): boolean =>
    placementOf(service, endpoint, settings).requires.gpu !== undefined;
  const all = takersOf(service);
  const requiring = all.filter(requiresGpu);
  const needing = requiring.length > 0 ? requiring : all;
  return needing.some(({ name }) => runs(name)) ? gpuNeedOf(settings, service) : undefined;
}

/** Whether a machine has that many GPUs with so much memory, whatever has them now. */
export function hasGpus(gpus: readonly MachineGpu[], need: GpuNeed): boolean {
  return mostGpus(gpus, need) >= need.count;
}

/** The placement of an endpoint, by its service, itself and the settings of the deployment. */
export function placementOf(
  service: PlacementManifest,
  endpoint: PlacementManifest,
  settings: Placement,
): Placement {
  return {
    place: settings.place === "any" ? (endpoint.place ?? service.place ?? "any") : settings.place,
    requires: { ...service.requires, ...endpoint.requires, ...settings.requires },
  };
}

/** Whether nodes may start workers for some endpoint or mounted server, if they have its labels. */
export function runsOnNodes(service: PlacedService, settings: Placement): boolean {
  return takersOf(service).some(
    (endpoint) => placementOf(service, endpoint, settings).place !== "remote",
  );
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
 * The endpoints that a worker on a machine with these labels runs when it joins, by name, and the
 * mounted servers by path.
 * Throws NO_MATCHING_WORKER if it runs none; the error names the labels that the machine lacks
 * for the endpoint of which it lacks the fewest.
 */
export function joinedEndpoints(
  deployment: Placed,
  service: PlacedService,
  labels: MachineLabels,
): ReadonlySet<string> {
  const joinable = takersOf(service)
    .map((endpoint) => ({
      name: endpoint.name,
      ...placementOf(service, endpoint, deployment.settings),
    }))
    .filter(({ place }) => place !== "local")
    .map((endpoint) => ({ ...endpoint, missing: missingLabels(endpoint.requires, labels) }));
  const fitting = joinable.filter(({ missing }) => missing.length === 0);
  if (fitting.length > 0) {
    return new Set(fitting.map(({ name }) => name));
  }
  const [nearest] = joinable.toSorted((a, b) => a.missing.length - b.missing.length);
  throw nearest === undefined ? localOnly(deployment) : lacking(deployment, nearest);
}

function localOnly({ organization, name, settings }: Placed): Problem {
  const message = `deployment ${organization}/${name} runs in workers of the nodes only: tessera deployment update ${name} --place ${joinablePlace(settings)}`;
  return problem("NO_MATCHING_WORKER", message);
}

function lacking(
  { organization, name }: Placed,
  endpoint: Placement & { readonly name: string; readonly missing: readonly string[] },
): Problem {
  const { requires, missing } = endpoint;
  const message = `deployment ${organization}/${name} requires ${labelWord(missing)} ${missing.join(", ")}, which the worker does not have: join it with ${labelFlags(requires, missing)}`;
  return problem("NO_MATCHING_WORKER", message, { metadata: { labels: missing.join(",") } });
}

/** The setting with which workers may join: the code's `local` is overruled by `remote` alone. */
function joinablePlace({ place }: Placement): "any" | "remote" {
  return place === "local" ? "any" : "remote";
}

/**
 * Throws NO_MATCHING_WORKER where a machine that would join has too few GPUs for a worker of the
 * deployment.
 */
export function checkJoinedGpus(
  { organization, name }: Pick<Placed, "organization" | "name">,
  need: GpuNeed | undefined,
  gpus: readonly MachineGpu[],
): void {
  if (need !== undefined && !hasGpus(gpus, need)) {
    const message = `a worker of deployment ${organization}/${name} needs ${gpuNeedText(need)}, and this machine has ${gpusText(gpus.length)} that nvidia-smi lists`;
    throw problem("NO_MATCHING_WORKER", message);
  }
}

interface NodeMatch {
  /** The labels of the node. */
  readonly labels: MachineLabels;
  /** Its GPUs. Default: none. */
  readonly gpus?: readonly MachineGpu[];
  /** False for an artifact of kind `remote`, whose code is on other machines. */
  readonly hasCode: boolean;
  /** Its machine is drained. Default: it is not. */
  readonly isDrained?: boolean;
}

/**
 * What the endpoints of a deployment wait for whose workers this node may not start. Undefined:
 * it starts workers that run all of them.
 */
export function awaitedWorkers(
  deployment: Placed,
  service: PlacedService,
  node: NodeMatch,
): Awaited | undefined {
  const endpoints = new Map<string, string>();
  const { settings } = deployment;
  const all = takersOf(service);
  for (const endpoint of all) {
    const placement = placementOf(service, endpoint, settings);
    const need = gpuNeedOn(settings, service, (name) => name === endpoint.name);
    const awaited = awaitedWorker(deployment, { ...placement, need }, node);
    if (awaited !== undefined) {
      endpoints.set(endpoint.name, awaited);
    }
  }
  return endpoints.size === 0 ? undefined : { endpoints, isWhole: endpoints.size === all.length };
}

function awaitedWorker(
  { name, settings }: Placed,
  { place, requires, need }: Placement & { readonly need: GpuNeed | undefined },
  { labels, gpus = [], hasCode, isDrained = false }: NodeMatch,
): string | undefined {
  const missing = missingLabels(requires, labels);
  const lacksGpus = need !== undefined && !hasGpus(gpus, need);
  if (place !== "remote" && hasCode && missing.length === 0 && !lacksGpus) {
    return isDrained ? "a machine that takes work: that of this node is drained" : undefined;
  }
  if (place === "local") {
    const wanted = [
      ...(missing.length > 0 ? [`${labelWord(missing)} ${missing.join(", ")}`] : []),
      ...(lacksGpus ? [gpuNeedText(need)] : []),
    ].join(" and ");
    const how = missing.length === 0 ? "" : `: tessera start ${labelFlags(requires, missing)}`;
    return hasCode
      ? `a node with ${wanted}${how}`
      : `a worker that brings its code and joins, which its place \`local\` forbids: tessera deployment update ${name} --place ${joinablePlace(settings)}`;
  }
  const all = missingLabels(requires, {});
  const wanted = [
    ...(all.length > 0 ? [`${labelWord(all)} ${all.join(", ")}`] : []),
    ...(need === undefined ? [] : [gpuNeedText(need)]),
  ].join(" and ");
  const needed = wanted === "" ? "" : ` with ${wanted}`;
  if (!hasCode) {
    return `a worker${needed} that brings its code and joins as deployment ${name}`;
  }
  const flags = [`--deployment ${name}`, ...(all.length > 0 ? [labelFlags(requires, all)] : [])];
  return `a worker${needed} that joins: tessera worker --join URL ${flags.join(" ")}`;
}

/**
 * What the endpoints wait for that no worker serves, as one text for people: `waits for …`, or,
 * where they differ, `endpoint learn waits for …; endpoints a, b wait for …`. Undefined: all
 * are served.
 */
export function awaitedText(
  { endpoints, isWhole }: Awaited,
  isServed: (endpoint: string) => boolean,
): string | undefined {
  const waiting = Map.groupBy(
    [...endpoints].filter(([name]) => !isServed(name)),
    ([, awaited]) => awaited,
  );
  const [first] = waiting;
  if (first === undefined) {
    return undefined;
  }
  if (isWhole && first[1].length === endpoints.size) {
    return `waits for ${first[0]}`;
  }
  return [...waiting]
    .map(([awaited, found]) => {
      const names = found.map(([name]) => name).join(", ");
      const [word, verb] = found.length === 1 ? ["endpoint", "waits"] : ["endpoints", "wait"];
      return `${word} ${names} ${verb} for ${awaited}`;
    })
    .join("; ");
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
