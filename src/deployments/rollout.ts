/**
 * The revisions of one deployment on this node: which one serves, which are on
 * their way, which one failed, and what has to be right before workers are
 * started with one.
 */

import type { ServiceCode } from "../pool/options.ts";
import type { Pool } from "../pool/pool.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { ClaimedTask } from "../storage/storage.ts";
import type { TaskFailure } from "../tasks/task.ts";
import { variableFault } from "./environment.ts";
import { Revision } from "./revision.ts";
import type { FailedRevision } from "./state.ts";

/** A revision that could not be brought in; the message says why. */
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
   * Native code may be loaded. It runs outside of the permission model, with
   * the rights of the node itself. Default: false.
   */
  readonly allowNativeCode?: boolean | undefined;
}

export interface RolloutOptions {
  readonly policy: RolloutPolicy;
  readonly pool: Pool;
  readonly now: () => number;
  /** What the workers of a service wrote last. */
  readonly lastLines: (service: ServiceCode) => readonly string[];
  /** The moment in which a revision takes over. It may throw, and nothing has changed then. */
  onTakeover(manifest: ServiceManifest): void;
  /** A revision serves. */
  onActive(manifest: ServiceManifest): void;
  /** A deploy has ended, one way or the other. */
  onEnd(): void;
}

export class Rollout {
  readonly #options: RolloutOptions;
  #underWay = 0;
  #service: ServiceCode | undefined;
  #revision: Revision | undefined;
  #failed: { readonly service: ServiceCode; readonly fact: FailedRevision } | undefined;

  constructor(options: RolloutOptions) {
    this.#options = options;
  }

  /** The revision that serves; undefined before the first. */
  get revision(): Revision | undefined {
    return this.#revision;
  }

  /** The newest revision, when it could not start. */
  get failed(): FailedRevision | undefined {
    return this.#failed?.fact;
  }

  /** The last lines of the service that there is most to say about: the one that failed, or serves. */
  get lines(): readonly string[] {
    const service = this.#failed?.service ?? this.#service;
    return service ? this.#options.lastLines(service) : [];
  }

  /** See `HostedDeployment.deploy`. */
  async deploy(service: ServiceCode, signal?: AbortSignal): Promise<ServiceManifest> {
    const { policy, pool, onActive } = this.#options;
    const takeOver = (manifest: ServiceManifest): void => this.#takeOver(service, manifest);
    this.#underWay += 1;
    try {
      checkPolicy(service, policy);
      const manifest = await pool.replace(service, takeOver, signal);
      onActive(manifest);
      return manifest;
    } catch (err) {
      // One that nobody wants any more has not failed.
      signal?.throwIfAborted();
      throw this.#fail(service, err);
    } finally {
      this.#underWay -= 1;
      this.#options.onEnd();
    }
  }

  /** See `HostedDeployment.resume`. */
  resume(service: ServiceCode, manifest: ServiceManifest): void {
    const { policy, pool, onActive, onEnd } = this.#options;
    try {
      checkPolicy(service, policy);
      this.#takeOver(service, manifest);
    } catch (err) {
      throw this.#fail(service, err);
    }
    pool.adopt(service);
    onActive(manifest);
    onEnd();
  }

  /** Why a claimed task cannot run; undefined when it can, or when that is not for this revision to say. */
  refusal(claimed: ClaimedTask): TaskFailure | undefined {
    return this.#isNewest ? this.#revision?.refusal(claimed, this.#options.now()) : undefined;
  }

  /** True for an endpoint whose tasks nobody runs any more. */
  lacks(endpoint: string): boolean {
    return this.#isNewest && this.#revision?.lacks(endpoint) === true;
  }

  #takeOver(service: ServiceCode, manifest: ServiceManifest): void {
    const revision = new Revision(service, manifest, this.#options.now());
    this.#options.onTakeover(manifest);
    this.#revision = revision;
    this.#service = service;
    this.#failed = undefined;
  }

  #fail(service: ServiceCode, err: unknown): RevisionFailed {
    const failed =
      err instanceof RevisionFailed
        ? err
        : new RevisionFailed(messageOf(err), this.#options.lastLines(service), err);
    const { message: reason } = failed;
    this.#failed = { service, fact: { revision: service.revision?.number, reason } };
    return failed;
  }

  /** While another revision is on its way, or has failed here, nothing is failed for this one's sake. */
  get #isNewest(): boolean {
    const standsIn = this.#service?.revision?.standsIn === true;
    return !standsIn && this.#underWay === 0 && this.#failed === undefined;
  }
}

function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** Refuses what the operator does not allow. Throws a `RevisionFailed`. */
function checkPolicy({ revision }: ServiceCode, { allowNativeCode }: RolloutPolicy): void {
  if (revision === undefined) {
    return;
  }
  const { platform, env } = revision;
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
