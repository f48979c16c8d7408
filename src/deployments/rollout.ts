/**
 * The roll-outs of one deployment on this node: tracks which revision serves and
 * which one failed, and checks the operator's policy before workers start.
 */

import { isDeepStrictEqual } from "node:util";
import { problem } from "../errors.ts";
import type { Pool } from "../pool/pool.ts";
import type { SandboxLevel } from "../pool/sandbox/sandbox.ts";
import type { ServiceCode } from "../pool/worker-options.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { ArgumentsReader } from "../service/input/arguments.ts";
import { calledEndpoints } from "../service/mounts.ts";
import type { ClaimedTask } from "../storage/storage.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import { variableFault } from "./environment.ts";
import { networkFault } from "./network.ts";
import { withShownPaths } from "./shown-paths.ts";
import type { FailedRevision } from "./state.ts";

/** Thrown when a revision cannot be rolled out; the message says why. */
export class RevisionFailed extends Error {
  override readonly name = "RevisionFailed";
  /** The last lines that its workers wrote. */
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[], cause?: unknown) {
    super(message, { cause });
    this.lines = lines;
  }
}

export interface RolloutPolicy {
  /**
   * True allows native code, which runs outside the permission model with the
   * rights of the node itself. Default: false.
   */
  readonly allowNativeCode?: boolean | undefined;
  /** What holds the workers of this node. Default: the permission model. */
  readonly sandbox?: SandboxLevel | undefined;
}

interface RolloutOptions {
  readonly policy: RolloutPolicy;
  readonly pool: Pool;
  readonly now: () => number;
  /** The last lines that the workers of a service wrote. */
  readonly lastLines: (service: ServiceCode) => readonly string[];
  /** A revision is about to take over. If this throws, the roll-out fails and nothing changes. */
  onTakeover(manifest: ServiceManifest): void;
  /** A revision has begun to serve. */
  onActive(manifest: ServiceManifest): void;
  /** A roll-out has ended, successfully or not. */
  onEnd(): void;
  /** The first worker of what was resumed has told its manifest; `wasOther`: another was believed. */
  onTold(manifest: ServiceManifest, wasOther: boolean): void;
}

export class Rollout {
  readonly #options: RolloutOptions;
  #underWay = 0;
  #service: ServiceCode | undefined;
  #revision: Revision | undefined;
  /** Whether a worker has told the manifest of what serves, or none of this node can. */
  #isTold = false;
  #failed: { readonly service: ServiceCode; readonly fact: FailedRevision } | undefined;

  constructor(options: RolloutOptions) {
    this.#options = options;
  }

  /** The serving revision; undefined before the first. */
  get revision(): Revision | undefined {
    return this.#revision;
  }

  /** The service that serves; undefined before the first. */
  get service(): ServiceCode | undefined {
    return this.#service;
  }

  /** The last roll-out's revision if it failed. */
  get failed(): FailedRevision | undefined {
    return this.#failed?.fact;
  }

  /** The last lines of `shown`. */
  get lines(): readonly string[] {
    return this.shown ? this.#options.lastLines(this.shown) : [];
  }

  /** The service whose lines people are shown: the failed one or, if none failed, the serving one. */
  get shown(): ServiceCode | undefined {
    return this.#failed?.service ?? this.#service;
  }

  /** See `Deployment.deploy`. */
  async deploy(service: ServiceCode, signal?: AbortSignal): Promise<ServiceManifest> {
    const { policy, pool, onActive } = this.#options;
    const takeOver = (manifest: ServiceManifest): void => {
      const revision = new Revision(service, manifest, this.#options.now());
      revision.compile();
      this.#takeOver(service, revision);
      this.#isTold = true;
    };
    this.#underWay += 1;
    try {
      checkPolicy(service, policy);
      const manifest = await pool.replace(service, takeOver, signal);
      onActive(manifest);
      return manifest;
    } catch (err) {
      // A cancelled roll-out has not failed.
      signal?.throwIfAborted();
      throw this.#fail(service, err);
    } finally {
      this.#underWay -= 1;
      this.#options.onEnd();
    }
  }

  /** See `Deployment.resume`. */
  resume(service: ServiceCode, manifest: ServiceManifest): void {
    const { policy, pool, onActive, onEnd } = this.#options;
    try {
      const startsNone = service.revision?.awaits?.isWhole === true;
      if (!startsNone) {
        checkPolicy(service, policy);
      }
      const revision = new Revision(service, manifest, this.#options.now());
      // Other schemas were compiled when they were rolled out, and are again by their first call.
      if (startsNone) {
        revision.compile();
      }
      this.#takeOver(service, revision);
    } catch (err) {
      throw this.#fail(service, err);
    }
    this.#isTold = service.revision?.awaits?.isWhole === true;
    pool.adopt(service);
    onActive(manifest);
    onEnd();
  }

  /**
   * The manifest that a worker of this service has told: what the first one tells goes before what
   * was believed. Throws when it cannot be served.
   */
  told(service: ServiceCode, manifest: ServiceManifest): void {
    const { now, onActive, onEnd, onTold } = this.#options;
    if (service !== this.#service || this.#isTold) {
      return;
    }
    const wasOther = !isDeepStrictEqual(manifest, this.#revision?.manifest);
    if (wasOther) {
      const revision = new Revision(service, manifest, now());
      revision.compile();
      this.#revision = revision;
      onActive(manifest);
    }
    this.#isTold = true;
    onEnd();
    onTold(manifest, wasOther);
  }

  /** What serves is wanted, so that no later roll-out has failed. */
  stay(): void {
    this.#failed = undefined;
  }

  /** Why a claimed task cannot run; undefined when it can, or when a newer revision has to decide. */
  refusal(claimed: ClaimedTask): TaskFailure | undefined {
    return this.isNewest ? this.#revision?.refusal(claimed, this.#options.now()) : undefined;
  }

  /** True for an endpoint whose tasks no worker runs any more. */
  lacks(endpoint: string): boolean {
    return this.isNewest && this.#revision?.lacks(endpoint) === true;
  }

  #takeOver(service: ServiceCode, revision: Revision): void {
    this.#options.onTakeover(revision.manifest);
    this.#revision = revision;
    this.#service = service;
    this.#failed = undefined;
  }

  #fail(service: ServiceCode, err: unknown): RevisionFailed {
    const failed =
      err instanceof RevisionFailed
        ? err
        : new RevisionFailed(
            withShownPaths(messageOf(err), service),
            this.#options.lastLines(service),
            err,
          );
    const { message: reason } = failed;
    this.#failed = { service, fact: { revision: service.revision?.number, reason } };
    return failed;
  }

  /** Whether what serves is believed: its first worker may tell of other endpoints. */
  get isBelieved(): boolean {
    return this.#revision !== undefined && !this.#isTold;
  }

  /**
   * False while another revision starts or has failed here, or what serves is believed: then it
   * must not fail any tasks.
   */
  get isNewest(): boolean {
    const standsIn = this.#service?.revision?.standsIn === true;
    return !standsIn && this.#isTold && this.#underWay === 0 && this.#failed === undefined;
  }
}

function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** Throws a `RevisionFailed` for a service that the operator's policy does not allow. */
function checkPolicy({ revision }: ServiceCode, { allowNativeCode, sandbox }: RolloutPolicy): void {
  if (revision === undefined) {
    return;
  }
  const { platform, env, network } = revision;
  const unenforced = networkFault(network, sandbox);
  if (unenforced !== undefined) {
    throw new RevisionFailed(unenforced, []);
  }
  if (platform !== undefined && allowNativeCode !== true) {
    const message =
      `the artifact has native code (for ${platform}), which no permission holds back; ` +
      "the operator of the platform can allow it: tessera start --native-code allow";
    throw new RevisionFailed(message, []);
  }
  for (const name of Object.keys(env)) {
    const fault = variableFault(name);
    if (fault !== undefined) {
      throw new RevisionFailed(`variable ${JSON.stringify(name.slice(0, 128))} ${fault}`, []);
    }
  }
}

/** An endpoint with the reader of its arguments. */
export interface FoundEndpoint {
  readonly manifest: EndpointManifest;
  readonly reader: ArgumentsReader;
}

/** Age of a task after which every node has the newest revision, whatever its clock says. */
const REVISION_SPREAD_MS = 300_000;

/** One revision of a service on this node: its endpoints, and which older tasks it can run. */
class Revision {
  /** Undefined under `tessera serve`, where a service has no revisions. */
  readonly number: number | undefined;
  readonly manifest: ServiceManifest;
  readonly #activeFromMs: number;
  readonly #endpoints: ReadonlyMap<string, FoundEndpoint>;

  constructor(service: ServiceCode, manifest: ServiceManifest, activeFromMs: number) {
    this.number = service.revision?.number;
    this.manifest = manifest;
    this.#activeFromMs = activeFromMs;
    this.#endpoints = new Map(
      calledEndpoints(manifest).map((endpoint) => [
        endpoint.name,
        { manifest: endpoint, reader: new ArgumentsReader(endpoint) },
      ]),
    );
  }

  /** Compiles the schemas of all arguments. Throws when one cannot be compiled. */
  compile(): void {
    for (const { reader } of this.#endpoints.values()) {
      reader.compile();
    }
  }

  find(endpoint: string): FoundEndpoint | undefined {
    return this.#endpoints.get(endpoint);
  }

  /** An endpoint by name. Throws ENDPOINT_NOT_FOUND; `deployment` is a name for the message. */
  endpoint(name: string, deployment: string): FoundEndpoint {
    const found = this.#endpoints.get(name);
    if (found === undefined) {
      const names = this.manifest.endpoints.map((endpoint) => endpoint.name).join(", ");
      throw problem(
        "ENDPOINT_NOT_FOUND",
        `deployment ${deployment} has no endpoint ${JSON.stringify(name.slice(0, 64))}; it has: ${names}`,
      );
    }
    return found;
  }

  /** A task endpoint. Throws ENDPOINT_NOT_FOUND, and ENDPOINT_NOT_A_TASK for an api. */
  taskEndpoint(name: string, deployment: string): FoundEndpoint {
    const found = this.endpoint(name, deployment);
    if (found.manifest.kind !== "task") {
      const message = `endpoint ${name} is an api and answers in the call: POST /${name}`;
      throw problem("ENDPOINT_NOT_A_TASK", message);
    }
    return found;
  }

  /** True for an endpoint whose tasks this revision does not run. */
  lacks(endpoint: string): boolean {
    return this.#endpoints.get(endpoint)?.manifest.kind !== "task";
  }

  /**
   * Why a task submitted under an earlier revision cannot run on this one; undefined
   * when it can. Later tasks were checked on submission, or belong to a revision
   * that this node does not know yet.
   */
  refusal({ task, arguments: payload }: ClaimedTask, nowMs: number): TaskFailure | undefined {
    if (this.number === undefined || !this.#isOlder(task, nowMs)) {
      return undefined;
    }
    const { endpoint } = task;
    const found = this.#endpoints.get(endpoint);
    if (found === undefined) {
      return failed(`revision ${this.number} has no endpoint ${endpoint}`);
    }
    if (found.manifest.kind !== "task") {
      return failed(`endpoint ${endpoint} is an api in revision ${this.number} and runs no tasks`);
    }
    const fault = found.reader.faultOf(payload);
    if (fault === undefined) {
      return undefined;
    }
    const place = fault.field === "" ? "the arguments" : `argument ${JSON.stringify(fault.field)}`;
    const message = `the arguments do not fit endpoint ${endpoint} of revision ${this.number}: ${place} ${fault.description}`;
    return { ...failed(message), violations: [fault] };
  }

  #isOlder({ createdAtMs }: Task, nowMs: number): boolean {
    return createdAtMs < this.#activeFromMs || createdAtMs < nowMs - REVISION_SPREAD_MS;
  }
}

function failed(message: string): TaskFailure {
  return { reason: "error", code: "failed_precondition", message };
}
