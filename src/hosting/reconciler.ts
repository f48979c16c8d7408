/**
 * The reconciler of one deployment on this node: brings the running state to the
 * desired state.
 *
 * It gets the desired record whenever that may have changed, and works towards the
 * latest one, one step at a time:
 *
 *   1. The revision is prepared: its artifact on disk, its environment with the
 *      secrets.
 *   2. If nothing runs yet, the revision that served here last resumes. What wants no worker at
 *      rest, and whose manifest is stored (`manifests.ts`), is not even prepared: it is asleep
 *      until somebody asks for it (`wake`).
 *   3. Another revision, environment or limit is rolled out beside the serving one.
 *      If it cannot start, the old one continues to serve, and the roll-out is
 *      retried with exponential backoff (`RetryBackoff`), or at once when the record changes. If the
 *      record changes during a roll-out, the roll-out is cancelled, so that a
 *      revision that hangs does not delay the one that fixes it. A revision whose workers
 *      this node may not start (`deployments/placement.ts`) serves at once.
 *   4. A revision that was deployed while the deployment was stopped is not known to load: it
 *      takes no new work until a worker of it is ready, and callers hear why.
 *   5. The number of workers follows the load within the node's share. A stopped
 *      deployment has none and takes no new work; its tasks stay readable.
 *
 * No failure ends the reconciler: the node reports failures as the status.
 */
import { isDeepStrictEqual } from "node:util";
import type { Deployment } from "../deployments/deployment.ts";
import {
  NOTHING_HERE,
  type QueuedKnowledge,
  type QueuedReason,
  type QueuedTask,
  queuedReason,
} from "../deployments/queued-reason.ts";
import type { DeploymentStatus } from "../deployments/state.ts";
import type { Problem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { DeploymentReport, NodeWorkers } from "../storage/hosting/nodes.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import type { LastServed, ServedRevision } from "./last-served.ts";
import type { Manifests } from "./manifests.ts";
import {
  keyOf,
  type PreparationOptions,
  prepare,
  releaseLater,
  standIn,
  untilAborted,
} from "./preparation.ts";
import { failed, starting, stopped, waiting } from "./refusals.ts";
import { RetryBackoff } from "./retry-backoff.ts";
import { reportOf } from "./status.ts";

interface ReconcilerOptions extends PreparationOptions {
  /** Creates the running deployment, with its number of workers within these bounds. */
  readonly open: (record: DesiredDeployment, scale: Share) => Deployment;
  /** An older revision that other nodes serve, used when the target revision does not start here. */
  readonly servedByOthers: (record: DesiredDeployment) => Promise<ServedRevision | undefined>;
  readonly served: LastServed;
  readonly manifests: Pick<Manifests, "maySleep" | "read" | "note">;
  /** Called when it falls asleep; what is returned ends when it wakes. */
  readonly asleep: (record: DesiredDeployment) => Disposable;
  readonly shareOf: (record: DesiredDeployment) => Share;
  readonly log: Log;
  /** The result of `report` may have changed. */
  onChange(): void;
}

/** This node's share of the workers. */
export interface Share {
  readonly min: number;
  readonly max: number;
  readonly nodes: number;
  readonly queueTimeMs: number;
}

interface Current extends ServedRevision {
  /** See `keyOf`; empty for a stand-in, and for what is to be brought in anew. */
  readonly key: string;
  /** Of what is to be brought in anew because the machine has changed, its key until then. */
  readonly keyBefore?: string | undefined;
  readonly artifact: HeldArtifact;
  /** Whether a worker of it was ready once, or none of this node is to be. */
  isTried: boolean;
}

/**
 * How a revision comes: `deploy` proves it by a worker; `resume` goes on with what served before;
 * `believe` takes its manifest as it is, because a stopped deployment has no workers.
 */
type How = "deploy" | "resume" | "believe";

interface RunOptions {
  readonly how: How;
  readonly signal: AbortSignal;
  /** Default: that of the artifact. */
  readonly manifest?: ServiceManifest | undefined;
}

interface Asleep {
  readonly record: DesiredDeployment;
  readonly kept: Disposable;
  manifest?: Promise<ServiceManifest | undefined>;
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
  /** What it would serve, while it is asleep. */
  #asleep: Asleep | undefined;
  #isWoken = false;
  #backoff: RetryBackoff | undefined;
  #settling: Promise<void> | undefined;
  /** The roll-out under way. */
  #bringing: Bringing | undefined;
  /** What the preparation under way does now; undefined: nothing that takes a while. */
  #preparing: string | undefined;
  #again = false;
  #ended = false;
  #ending: Promise<void> | undefined;
  readonly #resumed = Promise.withResolvers<void>();
  /** Resolves when something serves. */
  readonly #opened = Promise.withResolvers<void>();

  constructor(record: DesiredDeployment, options: ReconcilerOptions) {
    this.#record = record;
    this.#options = options;
    this.#settle();
  }

  get record(): DesiredDeployment {
    return this.#record;
  }

  /** Resolves when the last served revision serves again, or cannot. */
  get resumed(): Promise<void> {
    return this.#resumed.promise;
  }

  /**
   * The running deployment. Throws NO_WORKER while it starts or waits for room on the node, DEPLOYMENT_FAILED when
   * it could not start, and DEPLOYMENT_STOPPED while it is stopped and not opened yet.
   */
  get deployment(): Deployment {
    if (this.#deployment && this.#current) {
      return this.#deployment;
    }
    if (this.#backoff !== undefined) {
      throw failed(this.#record);
    }
    if (this.#record.desiredState === "stopped") {
      throw stopped(this.#record);
    }
    const waits = this.#deployment?.rolloutWaits !== undefined;
    throw waits ? waiting(this.#record) : starting(this.#record);
  }

  /** The artifact of the revision that serves; undefined before the first. */
  get artifact(): HeldArtifact | undefined {
    return this.#current?.artifact;
  }

  /** True when it takes calls, even if a worker has to start for them. */
  get isReady(): boolean {
    const { desiredState } = this.#record;
    return desiredState === "running" && (this.isAsleep || this.#deployment?.ready === true);
  }

  /** Whether nothing of it is here: `wake` goes before its `deployment`. */
  get isAsleep(): boolean {
    return this.#asleep !== undefined;
  }

  /** What is stored of what is asleep, without waking it; undefined: it is not, or nothing is read. */
  async manifestAsleep(): Promise<ServiceManifest | undefined> {
    const asleep = this.#asleep;
    if (asleep === undefined) {
      return undefined;
    }
    asleep.manifest ??= this.#options.manifests.read(asleep.record).catch((err: unknown) => {
      // The next who asks reads again.
      asleep.manifest = undefined;
      throw err;
    });
    return asleep.manifest;
  }

  /** Opens what is asleep; resolves when it takes calls, or cannot. */
  async wake(): Promise<void> {
    this.#isWoken = true;
    this.#settle();
    await Promise.race([this.#settling, this.#opened.promise]);
  }

  /** Sets the desired state. */
  want(record: DesiredDeployment): void {
    const key = keyOf(record);
    const { desiredState } = record;
    const isOther = key !== keyOf(this.#record);
    // Who starts a deployment that was stopped wants it tried again.
    const isStarted = desiredState === "running" && this.#record.desiredState === "stopped";
    const before = this.#record.pausedEndpoints;
    this.#record = record;
    if (!isDeepStrictEqual(before, record.pausedEndpoints)) {
      this.#deployment?.pausesChanged();
    }
    if (isOther || isStarted) {
      this.#forgive();
      this.#options.onChange();
    }
    if (this.#bringing?.key !== key || this.#bringing.desiredState !== desiredState) {
      this.#bringing?.abort.abort(new Error("something else is wanted"));
    }
    this.#settle();
  }

  /** Applies the node's current share of the workers, and the stopped state. */
  rescale(): void {
    if (this.#deployment) {
      const isStopped = this.#record.desiredState === "stopped";
      const isUntried = !isStopped && this.#current?.isTried === false;
      const share = this.#options.shareOf(this.#record);
      this.#deployment.scale = isStopped
        ? { ...share, min: 0, max: 0 }
        : // Nobody's call starts the worker that shows whether it loads.
          { ...share, min: Math.max(share.min, isUntried ? 1 : 0) };
      this.#deployment.closed = isStopped
        ? () => stopped(this.#record)
        : isUntried
          ? () => this.#untried()
          : undefined;
      this.#options.onChange();
    }
  }

  /** The machine has other GPUs than before: what waits for some is brought in anew. */
  gpusChanged(): void {
    if (this.#deployment?.service?.revision?.awaits !== undefined) {
      this.#bringAnew();
    }
  }

  /**
   * The machine was drained, or taken back: what may run here is decided anew, also of a roll-out
   * under way.
   */
  drainChanged(): void {
    if (this.#bringing !== undefined) {
      this.#bringing.abort.abort(new Error("what may run on this machine has changed"));
      this.#settle();
    }
    this.#bringAnew();
  }

  /** Its workers on this node have changed. */
  workersChanged(): void {
    const current = this.#current;
    if (current?.isTried === false && this.#deployment?.hasWorker === true) {
      current.isTried = true;
      void this.#noteServed(current);
      this.rescale();
    }
  }

  /** The first worker of what was resumed has told its manifest. */
  told(manifest: ServiceManifest, wasOther: boolean): void {
    const current = this.#current;
    if (current === undefined) {
      return;
    }
    if (wasOther) {
      const text =
        "a worker tells another manifest than was stored: what it tells holds from now on";
      this.#options.onProgress(text, current.revision);
    }
    this.#noteManifest(current, manifest, wasOther);
  }

  report(): DeploymentReport {
    const record = this.#record;
    const serving = this.#asleep && keyOf(this.#asleep.record);
    return reportOf({
      record,
      status: this.#asleep
        ? sleeping(this.#asleep.record)
        : this.#current && this.#deployment?.status,
      isCurrent: (serving ?? this.#current?.key) === keyOf(record),
      failure: this.#backoff?.failure,
      waiting: this.#deployment?.rolloutWaits,
      step: this.#preparing,
    });
  }

  /** Whether something serves here, so that its `deployment` is there. */
  get isOpen(): boolean {
    return this.#deployment !== undefined && this.#current !== undefined;
  }

  /** Why a task of it is queued, as far as this node knows by itself. */
  whyQueued(task: QueuedTask, nowMs: number, known?: QueuedKnowledge): QueuedReason {
    if (this.#deployment !== undefined && this.#current !== undefined) {
      return this.#deployment.whyQueued(task, known);
    }
    const more = {
      ...known,
      isStopped: this.#record.desiredState === "stopped",
      paused: this.#record.pausedEndpoints.find(({ endpoint }) => endpoint === task.endpoint),
      failure: this.#backoff?.failure.message,
      preparing: this.#preparing,
    };
    return this.#deployment === undefined
      ? queuedReason(task, { ...NOTHING_HERE, nowMs, serves: this.isAsleep, ...more })
      : this.#deployment.whyQueued(task, more);
  }

  /** Its workers on this node. */
  get workers(): NodeWorkers {
    return this.#deployment?.workers ?? { workers: [], omitted: 0 };
  }

  /** Kills its workers at once, because the node's own process is ending. */
  abandon(): void {
    this.#deployment?.abandon();
  }

  /** Lets running calls finish within `drainMs`, and closes. Runs once. */
  end(drainMs: number): Promise<void> {
    this.#ending ??= this.#end(drainMs);
    return this.#ending;
  }

  /** Why what was never tried takes no work. */
  #untried(): Problem {
    const isFaulty = this.#deployment?.lastFault !== undefined;
    return isFaulty ? failed(this.#record) : starting(this.#record);
  }

  async #end(drainMs: number): Promise<void> {
    this.#ended = true;
    this.#bringing?.abort.abort(new Error("the node is shutting down"));
    this.#backoff?.[Symbol.dispose]();
    await this.#deployment?.drain(drainMs);
    await this.#settling;
    this.#endSleep();
    await this.#deployment?.[Symbol.asyncDispose]();
    this.#current?.artifact.release();
    this.#current = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end(0);
  }

  #bringAnew(): void {
    if (this.#current !== undefined) {
      const { key, keyBefore } = this.#current;
      this.#current = { ...this.#current, key: "", keyBefore: key || keyBefore };
      this.#settle();
    }
  }

  #settle(): void {
    this.#again = true;
    this.#settling ??= this.#work().finally(() => {
      this.#settling = undefined;
    });
  }

  async #work(): Promise<void> {
    // Repeats while the record changes during a step.
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
      if (key !== this.#current?.key && !this.#backoff?.forbids(key)) {
        await this.#bring(record, key, abort.signal);
      }
      if (key === this.#current?.key) {
        this.#forgive();
      }
    } catch (err) {
      await this.#missed(record, err, abort.signal);
    }
    this.#bringing = undefined;
    if (!this.#maySleep(record)) {
      this.#endSleep();
    }
    this.rescale();
    this.#resumed.resolve();
    onChange();
  }

  /** A roll-out failed or was cancelled. */
  async #missed(record: DesiredDeployment, err: unknown, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const { deploymentId, targetRevision: revision } = record;
    if (signal.aborted) {
      log.info({ deploymentId, revision }, "a roll-out was given up: something else is wanted");
      return;
    }
    this.#failed(keyOf(record), err);
    const reason = this.#backoff?.failure.message;
    log.warn({ deploymentId, revision, reason }, "a deployment could not be started");
    try {
      await this.#fallBack(record, signal);
    } catch (cause) {
      if (!signal.aborted) {
        log.warn({ err: cause, deploymentId }, "nor could the revision that others serve");
      }
    }
  }

  /** Rolls out the desired revision, or leaves it asleep. */
  async #bring(record: DesiredDeployment, key: string, signal: AbortSignal): Promise<void> {
    const { served, manifests } = this.#options;
    const { deploymentId, targetRevision: revision, digest } = record;
    if (revision === undefined || digest === undefined) {
      return;
    }
    if (this.#current === undefined) {
      if (this.#maySleep(record)) {
        await this.#sleep(record, { revision, digest });
        return;
      }
      const manifest = record.manifest && (await manifests.read(record));
      const last = servedOf(this.#asleep?.record) ?? (await served.get(deploymentId));
      const isTarget = last?.revision === revision && last.digest === digest;
      if (record.desiredState === "stopped" || isTarget || manifest !== undefined) {
        const how = isTarget || manifest !== undefined ? "resume" : "believe";
        await this.#run(record, { revision, digest, key }, { how, signal, manifest });
        if (how === "resume") {
          await this.#noteServed({ revision, digest });
        }
        return;
      }
      if (last !== undefined) {
        // It serves while the target revision starts.
        const standIn = { ...last, key: "" };
        await this.#run(record, standIn, { how: "resume", signal }).catch(() => undefined);
        this.rescale();
      }
      this.#resumed.resolve();
    }
    if (record.desiredState === "stopped") {
      await this.#run(record, { revision, digest, key }, { how: "believe", signal });
      return;
    }
    const told = await this.#run(record, { revision, digest, key }, { how: "deploy", signal });
    if (told !== undefined && this.#current !== undefined) {
      this.#noteManifest(this.#current, told, false);
    }
    await this.#noteServed({ revision, digest });
  }

  /** Stores what a worker has told, unless it stands in for what is wanted. */
  #noteManifest({ key, artifact }: Current, manifest: ServiceManifest, wasOther: boolean): void {
    const record = this.#record;
    if (key === keyOf(record)) {
      void this.#options.manifests.note(record, artifact.index, { manifest, wasOther });
    }
  }

  async #noteServed({ revision, digest }: ServedRevision): Promise<void> {
    const { served, log } = this.#options;
    await served
      .set(this.#record.deploymentId, { revision, digest })
      .catch((err: unknown) => log.warn({ err }, "a revision could not be noted as served"));
  }

  /** On a node where nothing serves, rolls out the revision that other nodes serve. */
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
    { how, signal, manifest }: RunOptions,
  ): Promise<ServiceManifest | undefined> {
    const { open, shareOf } = this.#options;
    const onStep = (text: string): void => {
      this.#preparing = text;
      this.#options.onChange();
    };
    const preparing = prepare(record, { revision, digest }, { ...this.#options, signal, onStep });
    const { artifact, service } = await untilAborted(preparing, signal).finally(() => {
      this.#preparing = undefined;
    });
    const code = key === "" ? standIn(service) : service;
    const startsNone = code.revision?.awaits?.isWhole === true;
    let told: ServiceManifest | undefined;
    try {
      if (this.#ended) {
        throw new Error("the node is shutting down");
      }
      if (this.#deployment === undefined) {
        this.#deployment = open(record, shareOf(record));
      }
      // Where workers have to join, none can prove the service first: its manifest is believed,
      // unless it is known from a worker that ran here until now.
      if (how !== "deploy" || startsNone) {
        const known = this.#current?.keyBefore === key ? this.#deployment.manifest : undefined;
        this.#deployment.resume(code, manifest ?? known ?? artifact.index.service);
      } else {
        told = await this.#deployment.deploy(code, signal);
      }
    } catch (err) {
      artifact.release();
      throw err;
    }
    const before = this.#current;
    const isTried = how !== "believe" || startsNone;
    this.#current = { revision, digest, key, artifact, isTried };
    this.#opened.resolve();
    this.#endSleep();
    if (before) {
      releaseLater(before.artifact);
    }
    return told;
  }

  /** It serves from now on, without anything of it here. */
  async #sleep(record: DesiredDeployment, served: ServedRevision): Promise<void> {
    if (this.#asleep !== undefined && keyOf(this.#asleep.record) !== keyOf(record)) {
      this.#endSleep();
    }
    this.#asleep ??= { record, kept: this.#options.asleep(record) };
    await this.#noteServed(served);
  }

  #endSleep(): void {
    this.#asleep?.kept[Symbol.dispose]();
    this.#asleep = undefined;
  }

  #maySleep(record: DesiredDeployment): boolean {
    return (
      !this.#isWoken && this.#current === undefined && this.#options.manifests.maySleep(record)
    );
  }

  #failed(key: string, err: unknown): void {
    const before = this.#backoff;
    before?.[Symbol.dispose]();
    if (!this.#ended) {
      this.#backoff = new RetryBackoff(key, err, { before, retry: () => this.#settle() });
    }
  }

  /** A failed roll-out is of no concern any more: it belongs to what was wanted before. */
  #forgive(): void {
    this.#backoff?.[Symbol.dispose]();
    this.#backoff = undefined;
    if (this.#current?.key === keyOf(this.#record)) {
      this.#deployment?.stay();
    }
  }
}

function servedOf(record: DesiredDeployment | undefined): ServedRevision | undefined {
  const { targetRevision: revision, digest } = record ?? {};
  return revision !== undefined && digest !== undefined ? { revision, digest } : undefined;
}

/** The status of what is asleep. */
function sleeping({ targetRevision: revision }: DesiredDeployment): DeploymentStatus {
  return {
    state: "ready",
    reason: "",
    revision,
    ready: 0,
    wanted: 0,
    failed: undefined,
    lines: [],
  };
}
