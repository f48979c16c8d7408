/**
 * All deployments of a node. Every node runs every deployment with its share of
 * the workers, so any node serves any request. When a node dies, the others only
 * have to start more workers.
 */
import type { ChangeFeed } from "../auth/change-feed.ts";
import type { Principal } from "../auth/principal.ts";
import type { Deployment } from "../deployments/deployment.ts";
import type { CallTarget, Directory, Located, StoredDeployment } from "../deployments/directory.ts";
import {
  isForLaunchers,
  isOfThisNode,
  NOTHING_HERE,
  type QueuedKnowledge,
  type QueuedReason,
  type QueuedTask,
  queuedReason,
} from "../deployments/queued-reason.ts";
import type { CorsManifest } from "../protocol/manifest.ts";
import { findTask } from "../queue/tasks.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { DeploymentWorkers } from "../storage/hosting/machines.ts";
import type { NodeWorkers } from "../storage/hosting/nodes.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import { within } from "../time/race.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import { DesiredDeployments } from "./desired-state.ts";
import {
  type NodeDeployment,
  type NodeDeploymentOptions,
  openNodeDeployment,
} from "./node-deployment.ts";
import { empty, starting } from "./refusals.ts";
import type { Routing } from "./routing.ts";
import { StatusReporter } from "./status-reporter.ts";
import { WorkerReporter } from "./worker-reporter.ts";

/**
 * How long a node that starts waits for artifacts of its deployments, and then for those at rest
 * that have tasks; the others are brought in later.
 */
const RESUME_TIMEOUT_MS = 15_000;

/**
 * How long a node whose machine is drained goes on as before, unready, so that balancers send it no
 * more calls when its workers go.
 */
const MACHINE_DRAIN_NOTICE_MS = 10_000;

/** How long a call waits for what is asleep to be opened, which takes milliseconds where its files are. */
const WAKE_TIMEOUT_MS = 15_000;

interface HostingOptions extends NodeDeploymentOptions {
  /** True when other nodes may use the same database. */
  readonly shared: boolean;
  readonly routing: Routing;
  readonly changes: ChangeFeed;
}

export class Hosting implements Directory, AsyncDisposable {
  readonly #options: HostingOptions;
  readonly #desired: DesiredDeployments;
  readonly #reporter: StatusReporter;
  /** Undefined where no other node asks. */
  readonly #workerReporter: WorkerReporter | undefined;
  readonly #deployments = new Map<string, NodeDeployment>();
  /** Deleted deployments that are being ended. */
  readonly #ending = new Set<Promise<void>>();
  #isMachineDrained = false;
  /** Until the workers go. */
  #notice: NodeJS.Timeout | undefined;
  #draining = false;
  #drained: Promise<void> | undefined;

  constructor(options: HostingOptions) {
    const { hosting, nodes, changes, log } = options;
    this.#options = options;
    this.#reporter = new StatusReporter({
      hosting,
      nodeId: nodes.nodeId,
      now: options.common.now,
      log,
      reportOf: (deploymentId) => this.#deployments.get(deploymentId)?.reconciler.report(),
    });
    this.#workerReporter = options.shared
      ? new WorkerReporter({
          hosting,
          nodeId: nodes.nodeId,
          log,
          workers: () => [...this.#deployments.values()].map(described),
        })
      : undefined;
    this.#desired = new DesiredDeployments({
      hosting,
      changes,
      log,
      known: () => [...this.#deployments.keys()],
      onRecord: (record) => this.#apply(record),
      onGone: (deploymentId) => this.#remove(deploymentId),
    });
  }

  /**
   * Opens all deployments. Resolves when those that this node served before take
   * calls again, not when all have started.
   */
  async start(): Promise<void> {
    const { served, caches } = this.#options;
    await this.#desired.start();
    const ids = new Set(this.#deployments.keys());
    await served.keepOnly(ids);
    void caches.keepOnly(ids);
    await this.#resumed();
    await this.#wakeBusy();
  }

  find(target: CallTarget, principal: Principal): Located | Promise<Located> {
    const record = this.#options.routing.find(target, principal);
    return record instanceof Promise
      ? record.then((found) => this.#locate(found))
      : this.#locate(record);
  }

  names(target: Pick<CallTarget, "host" | "header">): boolean {
    return this.#options.routing.names(target);
  }

  async corsOf(host: string): Promise<CorsManifest | undefined> {
    const target = { named: "", header: "", host };
    if (!this.names(target)) {
      return undefined;
    }
    try {
      const { facts, deployment } = await this.find(target, { kind: "anonymous" });
      const reconciler = this.#deployments.get(facts.deploymentId)?.reconciler;
      // Anybody may ask this, so that it wakes nothing.
      const manifest = reconciler?.isAsleep
        ? await reconciler.manifestAsleep()
        : deployment().manifest;
      return manifest?.cors;
    } catch {
      // Nothing runs there, and the request itself is told so.
      return undefined;
    }
  }

  /** The artifact of the revision that serves here; undefined where none does. */
  artifactOf(deploymentId: string): HeldArtifact | undefined {
    return this.#deployments.get(deploymentId)?.reconciler.artifact;
  }

  /** Applies changed shares of the workers. */
  rescale(): void {
    for (const { reconciler } of this.#deployments.values()) {
      reconciler.rescale();
    }
  }

  /** The machine has other GPUs than before. */
  gpusChanged(): void {
    for (const { reconciler } of this.#deployments.values()) {
      reconciler.gpusChanged();
    }
  }

  /**
   * The machine is drained: no workers are started here, and those that run end with their calls.
   * Where others take work, a balancer first has the time to notice that this node is not ready.
   */
  setMachineDrained(isDrained: boolean, others: number): void {
    if (this.#draining) {
      return;
    }
    if (!isDrained) {
      clearTimeout(this.#notice);
      this.#notice = undefined;
      this.#drainMachine(false);
    } else if (others === 0 || this.#deployments.size === 0) {
      this.#drainMachine(true);
    } else {
      this.#notice ??= setTimeout(() => this.#drainMachine(true), MACHINE_DRAIN_NOTICE_MS);
    }
  }

  #drainMachine(isDrained: boolean): void {
    if (this.#isMachineDrained !== isDrained) {
      this.#isMachineDrained = isDrained;
      for (const { reconciler } of this.#deployments.values()) {
        reconciler.drainChanged();
      }
    }
  }

  /** Reports every deployment again, because the storage may have dropped the node's reports. */
  reportAll(): void {
    this.#reporter.forget();
    this.#workerReporter?.forget();
  }

  /** The workers of a deployment on this node. */
  workersHere(deploymentId: string): NodeWorkers & { readonly nodeId: string } {
    const { nodeId } = this.#options.nodes;
    const deployment = this.#deployments.get(deploymentId);
    return { ...(deployment?.reconciler.workers ?? { workers: [], omitted: 0 }), nodeId };
  }

  whyQueued(deploymentId: string, task: QueuedTask): QueuedReason | undefined {
    const { now } = this.#options.common;
    return this.#deployments.get(deploymentId)?.reconciler.whyQueued(task, now());
  }

  /** The workers of an organization on this node, by deployment. */
  allWorkersHere(organizationId: string): readonly DeploymentWorkers[] {
    const { nodeId, machine: nodeMachine } = this.#options.nodes;
    const own = [...this.#deployments.values()].map(({ reconciler }) => reconciler);
    return own
      .filter(({ record }) => record.organizationId === organizationId)
      .map(({ record: { deploymentId, name: deployment }, workers }) => ({
        ...workers,
        ...{ nodeId, nodeMachine, deploymentId, deployment },
      }));
  }

  /** The id of this node. */
  get nodeId(): string {
    return this.#options.nodes.nodeId;
  }

  /** Whether it takes no more work. */
  get isDraining(): boolean {
    return this.#draining;
  }

  /** Takes no more work and lets running calls finish within `drainMs`. A single drain runs. */
  drain(drainMs: number): Promise<void> {
    this.#drained ??= this.#drain(drainMs);
    return this.#drained;
  }

  /** Kills every worker at once, because the node's own process is ending. */
  abandon(): void {
    for (const { reconciler } of this.#deployments.values()) {
      reconciler.abandon();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0);
  }

  async #drain(drainMs: number): Promise<void> {
    this.#draining = true;
    clearTimeout(this.#notice);
    await this.#desired[Symbol.asyncDispose]();
    await Promise.all(
      [...this.#deployments.values()].map((deployment) => end(deployment, drainMs)),
    );
    await Promise.all(this.#ending);
    await this.#workerReporter?.[Symbol.asyncDispose]();
    await this.#reporter[Symbol.asyncDispose]();
  }

  async #resumed(): Promise<void> {
    const resumed = [...this.#deployments.values()].map(({ reconciler }) => reconciler.resumed);
    await within(Promise.all(resumed), RESUME_TIMEOUT_MS, () => undefined);
  }

  /** Wakes those that have tasks, of which maintenance tells only when they are due. */
  async #wakeBusy(): Promise<void> {
    const { common, log } = this.#options;
    const asleep = [...this.#deployments].filter(([, { reconciler }]) => reconciler.isAsleep);
    const waking = asleep.map(async ([deploymentId, { reconciler }]) => {
      try {
        const counts = await common.storage.countTasks({ deploymentId });
        if (counts.some(({ queued, running }) => queued + running > 0)) {
          await reconciler.wake();
        }
      } catch (err) {
        log.warn({ err, deploymentId }, "whether a deployment at rest has tasks could not be read");
      }
    });
    await within(Promise.all(waking), RESUME_TIMEOUT_MS, () => undefined);
  }

  /** The deployment for callers. One that is unknown to this node yet is read first. */
  #locate(record: DeploymentRecord): Located | Promise<Located> {
    const { deploymentId, targetRevision } = record;
    const located: Located = {
      facts: record,
      wake: () => this.#wake(deploymentId),
      deployment: () => this.#running(record),
      isReady: () => this.#deployments.get(deploymentId)?.reconciler.isReady ?? false,
      stored: () => this.#stored(record),
      whyQueued: (task, position) => this.#whyQueued(record, task, position),
      placement: () => this.#deployments.get(deploymentId)?.reconciler.record.settings,
    };
    return this.#deployments.has(deploymentId) || targetRevision === undefined || this.#draining
      ? located
      : this.#desired.lookAt(deploymentId).then(() => located);
  }

  #wake(deploymentId: string): Promise<void> | undefined {
    const { reconciler } = this.#deployments.get(deploymentId) ?? {};
    return reconciler?.isAsleep && !this.#draining
      ? within(reconciler.wake(), WAKE_TIMEOUT_MS, () => undefined)
      : undefined;
  }

  #stored({ deploymentId, organization, name }: DeploymentRecord): StoredDeployment | undefined {
    const { storage, now } = this.#options.common;
    const isOpen = this.#deployments.get(deploymentId)?.reconciler.isOpen ?? true;
    return isOpen
      ? undefined
      : {
          name: `${organization}/${name}`,
          tasks: {
            get: (question) => findTask(question, { deploymentId, storage, now }),
            place: () => undefined,
          },
        };
  }

  #whyQueued(
    { deploymentId, organizationId }: DeploymentRecord,
    task: QueuedTask,
    position: number | undefined,
  ): QueuedReason | Promise<QueuedReason> {
    const { hosting, nodes, shared, common } = this.#options;
    const { reconciler } = this.#deployments.get(deploymentId) ?? {};
    const nowMs = common.now();
    const why = (found?: QueuedKnowledge): QueuedReason => {
      const known = { position, ...found };
      return (
        reconciler?.whyQueued(task, nowMs, known) ??
        queuedReason(task, { ...NOTHING_HERE, nowMs, ...known })
      );
    };
    const here = why();
    const asksOthers = shared && isOfThisNode(here);
    const asksLauncher = isForLaunchers(here);
    if (!asksOthers && !asksLauncher) {
      return here;
    }
    const asked = { organizationId, deploymentId, nowMs };
    return Promise.all([
      asksOthers ? hosting.listWorkers(asked) : [],
      asksLauncher ? hosting.listLaunches(asked) : [],
    ]).then(([reports, [launch]]) => {
      const others = reports.filter(({ nodeId }) => nodeId !== nodes.nodeId);
      return why({
        readyElsewhere: others.flatMap(({ workers }) => workers.filter(({ ready }) => ready))
          .length,
        launch: launch?.said,
      });
    });
  }

  #running(record: DeploymentRecord): Deployment {
    const deployment = this.#deployments.get(record.deploymentId);
    if (deployment) {
      return deployment.reconciler.deployment;
    }
    throw record.targetRevision === undefined ? empty(record) : starting(record);
  }

  #apply(record: DesiredDeployment): void {
    const { deploymentId } = record;
    const deployment = this.#deployments.get(deploymentId);
    if (this.#draining || record.targetRevision === undefined) {
      return;
    }
    if (deployment === undefined) {
      const onChange = (): void => this.#reporter.changed(deploymentId);
      const options = { ...this.#options, isDrained: () => this.#isMachineDrained };
      this.#deployments.set(deploymentId, openNodeDeployment(record, options, onChange));
      onChange();
    } else if (record.version >= deployment.reconciler.record.version) {
      // Versions are compared, because a read that began earlier may end later.
      deployment.reconciler.want(record);
    }
  }

  #remove(deploymentId: string): void {
    const deployment = this.#deployments.get(deploymentId);
    if (deployment !== undefined) {
      this.#deployments.delete(deploymentId);
      const ending = this.#forget(deployment).finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
  }

  /** Ends a deleted deployment without waiting for its calls. */
  async #forget(deployment: NodeDeployment): Promise<void> {
    const { served, caches, log } = this.#options;
    const { deploymentId, organizationId } = deployment.reconciler.record;
    try {
      await end(deployment, 0);
      await this.#reporter.withdraw({ organizationId, deploymentId });
      await served.delete(deploymentId);
      await caches.delete(deploymentId);
    } catch (err) {
      log.error({ err, deploymentId }, "a deleted deployment could not be ended in good order");
    }
  }
}

function described({ reconciler: { record, workers } }: NodeDeployment) {
  const { organizationId, deploymentId } = record;
  return { organizationId, deploymentId, ...workers };
}

async function end({ reconciler, lines }: NodeDeployment, drainMs: number): Promise<void> {
  await reconciler.end(drainMs);
  await lines[Symbol.asyncDispose]();
}
