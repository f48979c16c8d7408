/**
 * One deployment on this node: brings what runs here to what should run.
 *
 * It is told the deployment's record whenever that may have changed, and works
 * towards the last one it was told, one step at a time:
 *
 *   1. What would run is prepared: the artifact on disk, the environment with
 *      its secrets.
 *   2. Where nothing runs yet, the revision that served here last resumes; its
 *      workers start when they are needed.
 *   3. Another revision, or another environment or limit, is brought in beside
 *      what serves. When that cannot start, what serves goes on, and it is
 *      tried again with growing pauses, or at once when the record changes.
 *      When the record changes meanwhile, it is given up: a revision that
 *      hangs does not hold up the one that mends it.
 *   4. The number of workers follows the load within the node's share. A
 *      deployment that is stopped has none and takes no new work; its tasks
 *      can still be asked for.
 *
 * Whatever fails does not end it: it is what the node reports.
 */
import type { Deployment } from "../deployments/deployment.ts";
import type { Log } from "../log/log.ts";
import type { DeploymentReport } from "../storage/hosting/nodes.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import type { LastServed, ServedRevision } from "./last-served.ts";
import {
  keyOf,
  type PreparationOptions,
  prepare,
  releaseLater,
  standIn,
  untilAborted,
} from "./preparation.ts";
import { failed, starting, stopped } from "./refusals.ts";
import { RetryBackoff } from "./retry-backoff.ts";
import { reportOf } from "./status.ts";

export interface ReconcilerOptions extends PreparationOptions {
  /** Makes what runs a deployment, with its number of workers within these bounds. */
  readonly open: (record: DesiredDeployment, scale: Share) => Deployment;
  /** A revision that other nodes serve, when the target revision does not start here. */
  readonly servedByOthers: (record: DesiredDeployment) => Promise<ServedRevision | undefined>;
  readonly served: LastServed;
  readonly shareOf: (record: DesiredDeployment) => Share;
  readonly log: Log;
  /** What `report` answers may have changed. */
  onChange(): void;
}

/** Workers on this node. */
export interface Share {
  readonly min: number;
  readonly max: number;
  readonly nodes: number;
}

interface Current extends ServedRevision {
  /** Tells one way to run it from another. */
  readonly key: string;
  readonly artifact: HeldArtifact;
}

interface Bringing extends Pick<DesiredDeployment, "desiredState"> {
  readonly key: string;
  readonly abort: AbortController;
}

export class Reconciler implements AsyncDisposable {
  readonly #options: ReconcilerOptions;
  #record: DesiredDeployment;
  #deployment: Deployment | undefined;
  #current: Current | undefined;
  #fault: RetryBackoff | undefined;
  #settling: Promise<void> | undefined;
  /** What is being brought in. */
  #bringing: Bringing | undefined;
  #again = false;
  #ended = false;
  #ending: Promise<void> | undefined;
  readonly #resumed = Promise.withResolvers<void>();

  constructor(record: DesiredDeployment, options: ReconcilerOptions) {
    this.#record = record;
    this.#options = options;
    this.#settle();
  }

  get record(): DesiredDeployment {
    return this.#record;
  }

  /** Resolves when what served here before the node began serves again, or cannot. */
  get resumed(): Promise<void> {
    return this.#resumed.promise;
  }

  /** What runs it. Throws NO_WORKER while it starts, and DEPLOYMENT_FAILED when it could not. */
  get deployment(): Deployment {
    if (this.#deployment && this.#current) {
      return this.#deployment;
    }
    if (this.#fault !== undefined) {
      throw failed(this.#record);
    }
    throw this.#record.desiredState === "stopped" ? stopped(this.#record) : starting(this.#record);
  }

  /** Whether calls are taken, be it that a worker has to start for them. */
  get isReady(): boolean {
    return this.#record.desiredState === "running" && (this.#deployment?.ready ?? false);
  }

  /** This is how it should be from now on. */
  want(record: DesiredDeployment): void {
    const key = keyOf(record);
    const isOther = key !== keyOf(this.#record);
    this.#record = record;
    if (isOther) {
      this.#forgive();
    }
    const { desiredState } = record;
    if (this.#bringing?.key !== key || this.#bringing.desiredState !== desiredState) {
      this.#bringing?.abort.abort(new Error("something else is wanted"));
    }
    this.#settle();
  }

  /** The node's share may be another one. */
  rescale(): void {
    if (this.#deployment) {
      const isStopped = this.#record.desiredState === "stopped";
      const share = this.#options.shareOf(this.#record);
      this.#deployment.scale = isStopped ? { ...share, min: 0, max: 0 } : share;
      this.#deployment.closed = isStopped ? () => stopped(this.#record) : undefined;
      this.#options.onChange();
    }
  }

  report(): DeploymentReport {
    const fault = this.#fault?.isTold === false ? this.#fault.message : undefined;
    const status = this.#current || this.#fault?.isTold ? this.#deployment?.status : undefined;
    return reportOf({ record: this.#record, status: status, fault });
  }

  /** Ends its workers at once: the node's own process ends. */
  abandon(): void {
    this.#deployment?.abandon();
  }

  /** Lets what runs finish within `drainMs`, and ends it; the same promise every time. */
  end(drainMs: number): Promise<void> {
    this.#ending ??= this.#end(drainMs);
    return this.#ending;
  }

  async #end(drainMs: number): Promise<void> {
    this.#ended = true;
    this.#bringing?.abort.abort(new Error("the node is shutting down"));
    this.#fault?.[Symbol.dispose]();
    await this.#deployment?.drain(drainMs);
    await this.#settling;
    await this.#deployment?.[Symbol.asyncDispose]();
    this.#current?.artifact.release();
    this.#current = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end(0);
  }

  #settle(): void {
    this.#again = true;
    this.#settling ??= this.#work().finally(() => {
      this.#settling = undefined;
    });
  }

  async #work(): Promise<void> {
    // What the record says is looked at anew for as long as it changes meanwhile.
    while (this.#again && !this.#ended) {
      this.#again = false;
      await this.#step(this.#record);
    }
  }

  async #step(record: DesiredDeployment): Promise<void> {
    const { onChange } = this.#options;
    const key = keyOf(record);
    const abort = new AbortController();
    this.#bringing = { key, abort, desiredState: record.desiredState };
    try {
      if (key !== this.#current?.key && !this.#fault?.forbids(key)) {
        await this.#bring(record, key, abort.signal);
      }
      if (key === this.#current?.key) {
        this.#forgive();
      }
    } catch (err) {
      await this.#missed(record, err, abort.signal);
    }
    this.#bringing = undefined;
    this.rescale();
    this.#resumed.resolve();
    onChange();
  }

  /** It could not be brought in, or is not wanted any more. */
  async #missed(record: DesiredDeployment, err: unknown, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const { deploymentId, targetRevision: revision } = record;
    if (signal.aborted) {
      log.info({ deploymentId, revision }, "a roll-out was given up: something else is wanted");
      return;
    }
    this.#failed(keyOf(record), err);
    const reason = this.#fault?.message;
    log.warn({ deploymentId, revision, reason }, "a deployment could not be started");
    try {
      await this.#fallBack(record, signal);
    } catch (cause) {
      if (!signal.aborted) {
        log.warn({ err: cause, deploymentId }, "nor could the revision that others serve");
      }
    }
  }

  /** Has what the record says take the place of what runs. */
  async #bring(record: DesiredDeployment, key: string, signal: AbortSignal): Promise<void> {
    const { served, log } = this.#options;
    const { deploymentId, targetRevision: revision, digest } = record;
    if (revision === undefined || digest === undefined) {
      return;
    }
    if (this.#current === undefined) {
      const last = await served.get(deploymentId);
      const isTarget = last?.revision === revision && last.digest === digest;
      if (record.desiredState === "stopped" || isTarget) {
        await this.#run(record, { revision, digest, key }, { how: "resume", signal });
        return;
      }
      if (last !== undefined) {
        // It serves while the other one starts.
        const standIn = { ...last, key: "" };
        await this.#run(record, standIn, { how: "resume", signal }).catch(() => undefined);
        this.rescale();
      }
      this.#resumed.resolve();
    }
    if (record.desiredState === "stopped") {
      await this.#run(record, { revision, digest, key }, { how: "resume", signal });
      return;
    }
    await this.#run(record, { revision, digest, key }, { how: "deploy", signal });
    await served
      .set(deploymentId, { revision, digest })
      .catch((err: unknown) => log.warn({ err }, "a revision could not be noted as served"));
  }

  /** On a node that has nothing to go on with. */
  async #fallBack(record: DesiredDeployment, signal: AbortSignal): Promise<void> {
    if (this.#current !== undefined || this.#ended) {
      return;
    }
    const served = await this.#options.servedByOthers(record);
    if (served !== undefined) {
      await this.#run(record, { ...served, key: "" }, { how: "deploy", signal });
    }
  }

  async #run(
    record: DesiredDeployment,
    { revision, digest, key }: ServedRevision & { readonly key: string },
    { how, signal }: { readonly how: "deploy" | "resume"; readonly signal: AbortSignal },
  ): Promise<void> {
    const { open, shareOf } = this.#options;
    const preparing = prepare(record, { revision, digest }, this.#options);
    const { artifact, service } = await untilAborted(preparing, signal);
    const code = key === "" ? standIn(service) : service;
    try {
      if (this.#ended) {
        throw new Error("the node is shutting down");
      }
      if (this.#deployment === undefined) {
        this.#deployment = open(record, shareOf(record));
      }
      if (how === "resume") {
        this.#deployment.resume(code, artifact.index.service);
      } else {
        await this.#deployment.deploy(code, signal);
      }
    } catch (err) {
      artifact.release();
      throw err;
    }
    const before = this.#current;
    this.#current = { revision, digest, key, artifact };
    if (before) {
      releaseLater(before.artifact);
    }
  }

  #failed(key: string, err: unknown): void {
    const before = this.#fault;
    before?.[Symbol.dispose]();
    if (!this.#ended) {
      const isTold = this.#deployment?.status.failed !== undefined;
      this.#fault = new RetryBackoff(key, err, { isTold, before, retry: () => this.#settle() });
    }
  }

  #forgive(): void {
    this.#fault?.[Symbol.dispose]();
    this.#fault = undefined;
  }
}
