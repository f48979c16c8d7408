/** Register: opens the session of a worker, resumes it, or adopts it from another node. */
import { isDeepStrictEqual } from "node:util";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { RegisterRequest, WorkerService } from "../../../gen/tessera/v1/worker_pb.js";
import { writeIndex } from "../../artifacts/index-file.ts";
import { mayUseSecrets } from "../../auth/grants.ts";
import { joins } from "../../auth/permissions.ts";
import type { TokenPrincipal } from "../../auth/principal.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import type { Directory, Located } from "../../deployments/directory.ts";
import { checkJoinedGpus, gpuNeedOn, joinedEndpoints } from "../../deployments/placement.ts";
import { problem } from "../../errors.ts";
import type { GpuNeed } from "../../pool/gpus/ledger.ts";
import { DEFAULT_LIMITS } from "../../pool/limits.ts";
import { RemoteWorker } from "../../pool/remote/remote-worker.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import { MAX_SILENCE_LIMIT_MS } from "../../protocol/silence.ts";
import { leaseOutlasting } from "../../queue/maintenance/leases.ts";
import { callerOf } from "../../server/rpc/engine/caller.ts";
import { takersOf } from "../../service/mounts.ts";
import type { LeasedTask } from "../../storage/leases.ts";
import type { Storage } from "../../storage/storage.ts";
import { durationFromMs } from "../../time/messages.ts";
import { workerToken } from "./caller.ts";
import type { DrainedMachines } from "./drained.ts";
import type { HandedSecrets } from "./handed-secrets.ts";
import { heldCalls } from "./messages.ts";
import {
  leaseOf,
  newSessionSecret,
  type ServedArtifact,
  type SessionParties,
  sessionExpired,
  storedSession,
  type WorkerSession,
  type WorkerSessions,
} from "./remote-sessions.ts";
import { Reports } from "./reports.ts";

/** The version of WorkerService that a node speaks. */
const PROTOCOL = 1;

/** How often a worker that says nothing else says that it is alive. */
const HEARTBEAT_INTERVAL_MS = 5_000;

const MEBIBYTE = 1024 ** 2;

/** What a worker joins of a deployment. */
export interface JoinedDeployment extends Pick<Deployment, "manifest" | "service"> {
  readonly joining: Pick<Deployment["joining"], "remote" | "join">;
}

/** A deployment that exists, running or not. */
interface Joinable extends Pick<Located, "facts" | "placement" | "wake"> {
  deployment(): JoinedDeployment;
}

export interface RegisterOptions {
  readonly directory: {
    find(...target: Parameters<Directory["find"]>): Joinable | Promise<Joinable>;
  };
  readonly storage: Pick<Storage, "adoptLease" | "closeLease">;
  readonly handed: Pick<HandedSecrets, "note">;
  readonly sessions: WorkerSessions;
  readonly drained: Pick<DrainedMachines, "apply">;
  /** The artifact of the revision that serves on this node; undefined where none does. */
  readonly artifactOf: (deploymentId: string) => ServedArtifact | undefined;
  readonly now: () => number;
  /** After this silence a worker is lost that asks for no other. */
  readonly silenceMs: number;
}

export function register(options: RegisterOptions): ServiceImpl<typeof WorkerService>["register"] {
  const { directory, sessions, artifactOf } = options;
  return async (req, { values }) => {
    const caller = callerOf({ values });
    const principal = workerToken(values);
    checkProtocol(req);
    const named = `${principal.organization}/${req.deployment}`;
    const located = await directory.find({ named, header: "", host: "" }, principal);
    const { deploymentId } = located.facts;
    if (!joins(principal, deploymentId)) {
      throw problem("ACCESS_DENIED", `the token is not for deployment ${req.deployment}`);
    }
    await located.wake?.();
    const deployment = asItIs(located.deployment());
    const artifact = artifactOf(deploymentId);
    checkMayHave(deployment, principal);
    const own = sessions.find(req.resumeSession, principal);
    if (req.restarted) {
      await endLost(options, { req, own, owner: { ...principal, deploymentId } });
    } else if (own?.deploymentId === deploymentId) {
      const keep = own.worker.resume(heldCalls(req.held));
      return answer({ session: own, deployment, keep });
    }
    const endpoints = endpointsFor(req, located, deployment.manifest);
    checkCode(req, deployment.manifest, artifact);
    const need = gpuNeedFor(located, deployment.manifest, endpoints);
    if (req.code.case === undefined) {
      const gpus = req.gpus.map(({ memoryBytes, slice }) => ({
        memoryBytes: Number(memoryBytes),
        ...(slice && { slice: {} }),
      }));
      checkJoinedGpus(located.facts, need, gpus);
    }
    const leave = sessions.takePlace(located.facts);
    const secrets = secretsOf(deployment);
    try {
      if (secrets.length > 0) {
        await options.handed.note({
          ...{ caller, organizationId: principal.organizationId, deploymentId, secrets },
          deployment: req.deployment,
          revision: deployment.service?.revision?.number ?? 0,
          hostname: req.runtime?.hostname ?? "",
        });
      }
      return await join(options, {
        req,
        principal,
        located,
        deployment,
        artifact,
        endpoints,
        need,
        leave,
      });
    } catch (err) {
      leave();
      throw err;
    }
  };
}

/**
 * The deployment with the revision that serves now: what a machine is given is that for which it
 * was asked whether it may have it, also when another revision takes over meanwhile.
 */
function asItIs({ manifest, service, joining }: JoinedDeployment): JoinedDeployment {
  return { manifest, service, joining };
}

/**
 * A machine is given the secrets of the revision, so its token has to be of somebody who may use
 * them now. Throws ACCESS_DENIED.
 */
function checkMayHave(deployment: JoinedDeployment, principal: TokenPrincipal): void {
  const secrets = secretsOf(deployment);
  if (secrets.length > 0 && !mayUseSecrets(principal, principal.organizationId)) {
    throw problem(
      "ACCESS_DENIED",
      `the deployment has secrets (${secrets.join(", ")}), which the owner of this token (${principal.user?.email}) may not use: run the worker with a token of the organization, or of an admin`,
    );
  }
}

function secretsOf({ service }: JoinedDeployment): readonly string[] {
  return service?.revision?.secrets ?? [];
}

function checkProtocol({ protocolMin, protocolMax }: RegisterRequest): void {
  if (protocolMin > PROTOCOL || protocolMax < PROTOCOL) {
    throw problem(
      "WORKER_INCOMPATIBLE",
      `the worker speaks versions ${protocolMin} to ${protocolMax} of WorkerService, and this node version ${PROTOCOL}: update the older of the two`,
    );
  }
}

/**
 * The endpoints and mounted servers that the machine may run; undefined: all. Throws
 * NO_MATCHING_WORKER where it may run none.
 */
function endpointsFor(
  req: RegisterRequest,
  { facts, placement }: Joinable,
  manifest: ServiceManifest,
): ReadonlySet<string> | undefined {
  const able = servesMounts(req) ? manifest : { ...manifest, mounts: [] };
  const [all, takers] = [takersOf(manifest), takersOf(able)];
  if (takers.length === 0 && all.length > 0) {
    throw problem(
      "WORKER_INCOMPATIBLE",
      "the deployment has mounted servers alone, and the worker does not say that it serves them (`mounts` of its features): update it",
    );
  }
  const settings = placement?.();
  const found = settings
    ? joinedEndpoints({ ...facts, settings }, able, req.labels)
    : new Set(takers.map(({ name }) => name));
  return found.size === all.length ? undefined : found;
}

function servesMounts({ features }: RegisterRequest): boolean {
  return features.includes("mounts");
}

/** What a worker takes of GPUs that runs these endpoints; undefined: all. */
function gpuNeedFor(
  { placement }: Pick<Joinable, "placement">,
  manifest: ServiceManifest,
  endpoints: ReadonlySet<string> | undefined,
) {
  const settings = placement?.();
  return settings && gpuNeedOn(settings, manifest, (name) => endpoints?.has(name) !== false);
}

/** A worker with code of its own has the manifest that was deployed; others need an artifact. */
function checkCode(
  { code, deployment }: RegisterRequest,
  manifest: ServiceManifest,
  artifact: ServedArtifact | undefined,
): void {
  if (code.case === "manifestJson") {
    if (!isDeepStrictEqual(parsed(code.value), JSON.parse(JSON.stringify(manifest)))) {
      throw problem(
        "MANIFEST_CONFLICT",
        `the worker's manifest is not that of the revision that deployment ${deployment} serves: deploy the worker's manifest (tessera deploy manifest.json --name ${deployment}), or start a worker of this revision`,
      );
    }
    return;
  }
  if (artifact === undefined || artifact.index.files.length === 0) {
    throw problem(
      "MANIFEST_CONFLICT",
      `deployment ${deployment} has no code that could be sent: its workers bring their own, with manifest_json`,
    );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw problem("REQUEST_INVALID", "manifest_json is not JSON", {
      violations: [{ field: "manifest_json", description: "is not JSON" }],
    });
  }
}

interface Joining {
  readonly req: RegisterRequest;
  readonly principal: TokenPrincipal;
  readonly located: Joinable;
  readonly deployment: JoinedDeployment;
  /** Of the same revision. */
  readonly artifact: ServedArtifact | undefined;
  readonly endpoints: ReadonlySet<string> | undefined;
  /** What it takes of GPUs; undefined: nothing. */
  readonly need: GpuNeed | undefined;
  /** Gives back the place of the worker. */
  readonly leave: () => void;
}

/** A worker that is new to this node: its lease is opened, or adopted from the node before. */
async function join(options: RegisterOptions, joining: Joining) {
  const { req, principal, located, deployment, artifact, endpoints, leave } = joining;
  const { sessions } = options;
  const { service } = deployment;
  const { remote } = deployment.joining;
  const id = remote.newId();
  const secret = newSessionSecret(id);
  const held = heldCalls(req.held);
  const isResumed = req.resumeSession !== "" && !req.restarted;
  const silenceMs = silenceFor(req, options);
  const ttlMs = leaseOutlasting(silenceMs);
  const { deploymentId } = located.facts;
  const owner = { ...principal, deploymentId };
  const adopted = isResumed ? await adopt(options, { req, id, secret, ttlMs, owner }) : [];
  if (adopted === undefined) {
    throw sessionExpired();
  }
  const worker = new RemoteWorker({
    ...remote,
    id,
    machine: machineOf(req, principal),
    revision: service?.revision?.number,
    manifest: deployment.manifest,
    mounts: servesMounts(req) ? deployment.manifest.mounts : undefined,
    lease: { session: storedSession(secret, owner), isAdopted: isResumed, ttlMs },
    silenceMs,
    held,
    lastCall: isResumed ? Number(req.lastCall) : 0,
    endpoints,
    gpus: gpusOf(joining),
    countsOf: remote.countsOf(id),
  });
  const session: WorkerSession = {
    secret,
    silenceMs,
    tokenId: principal.tokenId,
    organizationId: located.facts.organizationId,
    deploymentId,
    worker,
    artifact: req.code.case === "manifestJson" ? undefined : artifact,
    reports: new Reports({
      worker,
      logLinesPerSecond: limitsOf(deployment).logLinesPerSecond,
      onOutput: (line, stream) =>
        remote.onOutput(line, { workerId: id, stream, revision: worker.revision }),
      onForged: (fault) => worker.kill(fault),
    }),
  };
  sessions.add(session, leave);
  await options.drained.apply(session);
  const keep = await deployment.joining.join(worker, adopted, held);
  return answer({ session, deployment, keep, need: joining.need });
}

/** The silence after which this worker is lost: what it asks for, within limits. */
function silenceFor({ silenceLimit }: RegisterRequest, { silenceMs }: RegisterOptions): number {
  const askedMs = silenceLimit ? durationMs(silenceLimit) : 0;
  return Math.min(Math.max(askedMs, silenceMs), Math.max(MAX_SILENCE_LIMIT_MS, silenceMs));
}

/** Gives the calls of a session to others whose process has died: here, or under its lease. */
async function endLost(
  options: RegisterOptions,
  {
    req,
    own,
    owner,
  }: {
    readonly req: RegisterRequest;
    readonly own: WorkerSession | undefined;
    readonly owner: SessionParties;
  },
): Promise<void> {
  if (own) {
    own.worker.kill("its process has died, and was started again");
    return;
  }
  const { storage, now } = options;
  const id = `${leaseOf(req.resumeSession)}-lost`;
  const ttlMs = leaseOutlasting(0);
  if (await adopt(options, { req, id, secret: newSessionSecret(id), ttlMs, owner })) {
    await storage.closeLease({ leaseId: id, nowMs: now() });
  }
}

/** The attempts of the session that is resumed, under a lease of this node; undefined: it is over. */
async function adopt(
  { storage, now }: RegisterOptions,
  {
    req,
    id,
    secret,
    ttlMs,
    owner,
  }: {
    readonly req: RegisterRequest;
    readonly id: string;
    readonly secret: string;
    readonly ttlMs: number;
    readonly owner: SessionParties;
  },
): Promise<readonly LeasedTask[] | undefined> {
  return storage.adoptLease({
    leaseId: leaseOf(req.resumeSession),
    session: storedSession(req.resumeSession, owner),
    newLeaseId: id,
    newSession: storedSession(secret, owner),
    owner: `pid ${process.pid}`,
    nowMs: now(),
    ttlMs,
  });
}

function machineOf(
  { runtime, labels }: RegisterRequest,
  { machine: launched }: TokenPrincipal,
): RemoteWorker["machine"] {
  const { hostname = "", platform = "", version = "" } = runtime ?? {};
  return { hostname, platform, version, labels, launched };
}

function answer({
  session,
  deployment,
  keep,
  need,
}: {
  readonly session: WorkerSession;
  readonly deployment: JoinedDeployment;
  readonly keep: readonly number[];
  readonly need?: GpuNeed | undefined;
}) {
  const { worker, secret, silenceMs, artifact } = session;
  return {
    workerId: worker.id,
    deploymentId: session.deploymentId,
    session: secret,
    protocol: PROTOCOL,
    heartbeatInterval: durationFromMs(Math.min(HEARTBEAT_INTERVAL_MS, silenceMs / 3)),
    silenceLimit: durationFromMs(silenceMs),
    keep: keep.map(BigInt),
    artifactIndex: artifact ? Buffer.from(writeIndex(artifact.index)) : new Uint8Array(),
    manifestJson: JSON.stringify(deployment.manifest),
    revision: worker.revision ?? 0,
    settings: settingsOf(deployment, need),
  };
}

function limitsOf({ service }: JoinedDeployment) {
  return service?.revision?.limits ?? DEFAULT_LIMITS;
}

/** How many GPUs a worker has, of the memory of which it may have a part. */
function gpusOf({ need, req }: Pick<Joining, "need" | "req">): number {
  if (need === undefined) {
    return 0;
  }
  const { count, part, memoryBytes = 0 } = need;
  const largest = Math.max(memoryBytes, ...req.gpus.map((gpu) => Number(gpu.memoryBytes)));
  return count * (part ?? (memoryBytes > 0 ? memoryBytes / largest : 1));
}

function settingsOf(deployment: JoinedDeployment, need: GpuNeed | undefined) {
  const { graceMs, readyTimeoutMs, maxFileBytes, maxResultBytes } = deployment.joining.remote;
  const { memoryBytes, cpus, diskBytes, logLinesPerSecond, processes } = limitsOf(deployment);
  const { env = {}, network, readyTimeoutMs: own } = deployment.service?.revision ?? {};
  return {
    env,
    memoryMib: Math.floor(memoryBytes / MEBIBYTE),
    cpus,
    diskMib: Math.floor(diskBytes / MEBIBYTE),
    logLinesPerSecond,
    processes,
    gpus: need?.part ?? need?.count ?? 0,
    gpuMemoryMib: Math.floor((need?.memoryBytes ?? 0) / MEBIBYTE),
    networkAccess: network?.access ?? "open",
    networkHosts: [...(network?.hosts ?? [])],
    grace: durationFromMs(graceMs),
    readyTimeout: durationFromMs(own ?? readyTimeoutMs),
    maxFileBytes: BigInt(maxFileBytes),
    maxResultCharacters: BigInt(maxResultBytes),
  };
}
