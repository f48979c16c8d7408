/** Formats deployments for people. */
import {
  type Deployment,
  type DeploymentEndpoint,
  type DeploymentPlacement,
  DeploymentSchema,
  DeploymentStatus,
  EndpointKind,
  type PausedEndpoint,
  type Revision,
} from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { CommandRun } from "../command.ts";
import { fields, moment } from "../output.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";
import { placeText, settingLines } from "./settings.ts";

/** The name argument of deployment commands. */
export const NAME = ["<name>", "the deployment's name"] as const;

export function statusText(status: DeploymentStatus): string {
  return status === DeploymentStatus.UNSPECIFIED ? "" : DeploymentStatus[status].toLowerCase();
}

function onOff(value: boolean): string {
  return value ? "on" : "off";
}

export function deploymentTable(deployments: readonly Deployment[]): Table {
  return table(
    ["NAME", "STATUS", "REVISION", "WORKERS", "AUTHORIZATION", "CHANGED", "URL"],
    deployments.map((one) => [
      one.name,
      `${statusText(one.status)}${one.secretsWithheld.length > 0 ? ", secrets withheld" : ""}`,
      revisionText(one),
      workersText(one),
      onOff(one.authorization),
      moment(one.updatedAt),
      one.url,
    ]),
    { empty: "No deployments", drop: ["CHANGED", "AUTHORIZATION", "URL"] },
  );
}

export function showDeployment(call: CommandRun, deployment: Deployment): void {
  call.show(DeploymentSchema, deployment, (shown) => {
    const { settings, endpoints, createdAt, createdBy } = shown;
    const [status = "", ...reason] = statusLines(shown);
    const facts = fields([
      ["name", shown.name],
      ["organization", shown.organization],
      ["status", status],
      ["url", shown.url],
      ["authorization", onOff(shown.authorization)],
      ["revision", revisionText(shown)],
      ["workers", `${workersText(shown)}${shown.nodes > 1 ? ` on ${shown.nodes} nodes` : ""}`],
      // Where one node has all, the line before says so.
      ["nodes", shown.placements.length > 1 ? shown.placements.map(placementText).join(", ") : ""],
      ...settingLines(settings),
      // Names only: the values may be secrets that were set as variables by mistake.
      ["env", Object.keys(settings?.env ?? {}).join(", ")],
      ["secrets", settings?.secretNames.join(", ") ?? ""],
      ["withheld", shown.secretsWithheld.join(", ")],
      ["endpoints", endpoints.map((each) => endpointText(each, placeText(settings))).join(", ")],
      ["paused", shown.pausedEndpoints.map((each) => pausedText(each, endpoints)).join(", ")],
      ["created", `${moment(createdAt)} by ${createdBy}`],
      ["changed", moment(shown.updatedAt)],
      ["id", shown.deploymentId],
    ]);
    return [facts, ...reason.map((line) => `  ${line}`)].join("\n");
  });
  sayWithheld(call, deployment);
}

/** Tells which secrets the target revision runs without, and what to do, if there are any. */
export function sayWithheld(call: CommandRun, deployment: Deployment): void {
  const { name, targetRevision, secretsWithheld: names } = deployment;
  if (names.length > 0) {
    const which = `${names.length === 1 ? "the secret" : "the secrets"} ${names.join(", ")}`;
    call.terminal.say(
      plain(
        `warning: revision ${targetRevision} runs without ${which}, because its code or its variables are from somebody who may not use them: an admin reviews it and gives them with tessera deployment confirm-secrets ${name}`,
      ),
    );
  }
}

/** The status with its reason, which may include the worker's output. */
function statusLines({ status, statusReason }: Deployment): string[] {
  const [why = "", ...more] = statusReason.split("\n").map(plain);
  return [why === "" ? statusText(status) : `${statusText(status)}: ${why}`, ...more];
}

export function revisionTable(
  revisions: readonly Revision[],
  { revision: serving, settings }: Deployment,
): Table {
  const hasSecrets = (settings?.secretNames.length ?? 0) > 0;
  const hasCommits = revisions.some(({ source }) => source !== undefined);
  return table(
    [
      ...["REVISION", "DIGEST", "FILES", "SIZE", "CREATED", "BY"],
      ...(hasCommits ? ["COMMIT"] : []),
      "",
    ],
    revisions.map((one) => [
      String(one.revision),
      one.digest.slice(0, 12),
      String(one.files),
      inUnits(Number(one.sizeBytes)),
      moment(one.createdAt),
      one.createdBy,
      ...(hasCommits ? [commitText(one)] : []),
      noteOf(one, { serving, hasSecrets }),
    ]),
    { empty: "Nothing has been deployed yet", drop: ["FILES", "SIZE", "DIGEST"] },
  );
}

/** `1a2b3c4d main: Read faster`, with a plus where files were changed since. */
function commitText({ source }: Revision): string {
  if (source === undefined) {
    return "";
  }
  const { commit, branch, message, dirty } = source;
  const on = branch === "" ? "" : ` ${branch}`;
  return plain(`${commit.slice(0, 8)}${dirty ? "+" : ""}${on}: ${message}`);
}

function noteOf(
  { revision, rolledBackTo, secretsConfirmedBy }: Revision,
  { serving, hasSecrets }: { readonly serving: number; readonly hasSecrets: boolean },
): string {
  const notes = [
    ...(revision === serving ? ["serving"] : []),
    ...(rolledBackTo > 0 ? [`back to ${rolledBackTo}`] : []),
    ...(hasSecrets && secretsConfirmedBy === "" ? ["not confirmed for secrets"] : []),
  ];
  return notes.join(", ");
}

export function revisionText({ revision, targetRevision }: Deployment): string {
  if (targetRevision === 0) {
    return "none";
  }
  return revision === targetRevision
    ? String(revision)
    : `${revision === 0 ? "none" : revision}, then ${targetRevision}`;
}

export function workersText({ workers, settings }: Deployment): string {
  const { minWorkers, maxWorkers } = settings ?? {};
  const range = minWorkers === maxWorkers ? `${maxWorkers}` : `${minWorkers}..${maxWorkers}`;
  return maxWorkers === undefined ? String(workers) : `${workers} of ${range}`;
}

/** `learn (task, with gpu=*)`: with its place, where that is not the deployment's. */
function endpointText(endpoint: DeploymentEndpoint, usual: string): string {
  const place = placeText(endpoint);
  const facts = [
    kindText(endpoint.kind),
    ...(place === usual ? [] : [place]),
    ...limitsText(endpoint),
  ];
  return `${endpoint.name} (${facts.join(", ")})`;
}

/** `per key 2 at a time and 10/min`, where it has limits by key. */
function limitsText({ limitsByKey }: DeploymentEndpoint): string[] {
  if (limitsByKey === undefined) {
    return [];
  }
  const { concurrency, rate, bySeconds } = limitsByKey;
  const limits = [...(concurrency > 0 ? [`${concurrency} at a time`] : []), rate].filter(Boolean);
  return [
    ...(bySeconds ? ["by key, the least seconds first"] : []),
    ...(limits.length > 0 ? [`per key ${limits.join(" and ")}`] : []),
    ...(limits.length === 0 && !bySeconds ? ["by key in turn"] : []),
  ];
}

/** `learn (since 2026-01-02 03:04:05 by ada@example.com)`; the revision may not have it any more. */
function pausedText(
  { endpoint, pausedAt, pausedBy }: PausedEndpoint,
  endpoints: readonly DeploymentEndpoint[],
): string {
  const isThere = endpoints.some(({ name }) => name === endpoint);
  const gone = isThere ? "" : ", not in the newest revision";
  return plain(`${endpoint} (since ${moment(pausedAt)} by ${pausedBy}${gone})`);
}

/** `n1 (ready, 2 workers of revision 3)`. */
function placementText({ node, status, revision, workers }: DeploymentPlacement): string {
  const what = workers === 0 ? "no worker" : `${workers} ${workers === 1 ? "worker" : "workers"}`;
  return `${node} (${statusText(status)}, ${what}${revision === 0 ? "" : ` of revision ${revision}`})`;
}

function kindText(kind: EndpointKind): string {
  return EndpointKind[kind]?.toLowerCase() ?? "";
}
