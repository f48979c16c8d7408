/**
 * The deployments of a node. Every node has every deployment, with its share
 * of the workers, so any node serves any request, and when a node dies the
 * others only have to start more workers.
 */
import type { ChangeFeed } from "../auth/changes.ts";
import type { Principal } from "../auth/principal.ts";
import type { Deployment } from "../deployments/deployment.ts";
import type { CallTarget, Directory, Located } from "../deployments/directory.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import { DesiredDeployments } from "./desired-state.ts";
import {
  type NodeDeployment,
  type NodeDeploymentOptions,
  openNodeDeployment,
} from "./node-deployment.ts";
import { empty, starting } from "./refusals.ts";
import type { Routing } from "./routing.ts";
import { StatusReporter } from "./status-reporter.ts";

/** How long a node that starts waits for artifacts to be there; the others are there later. */
const RESUME_MS = 15_000;

const ANONYMOUS: Principal = { kind: "anonymous" };

export interface HostingOptions extends NodeDeploymentOptions {
  readonly routing: Routing;
  readonly changes: ChangeFeed;
}

export class Hosting implements Directory, AsyncDisposable {
  readonly #options: HostingOptions;
  readonly #records: DesiredDeployments;
  readonly #reports: StatusReporter;
  readonly #deployments = new Map<string, NodeDeployment>();
  /** Deployments that end, because they were deleted. */
  readonly #ending = new Set<Promise<void>>();
  #draining = false;
  #drained: Promise<void> | undefined;

  constructor(options: HostingOptions) {
    const { hosting, nodes, changes, log } = options;
    this.#options = options;
    this.#reports = new StatusReporter({
      hosting,
      nodeId: nodes.nodeId,
      log,
      reportOf: (deploymentId) => this.#deployments.get(deploymentId)?.reconciler.report(),
    });
    this.#records = new DesiredDeployments({
      hosting,
      changes,
      log,
      known: () => [...this.#deployments.keys()],
      onRecord: (record) => this.#apply(record),
      onGone: (deploymentId) => this.#remove(deploymentId),
    });
  }

  /**
   * Takes up all deployments; returns when those that it served before take
   * calls again, not when all have started.
   */
  async start(): Promise<void> {
    const { served } = this.#options;
    await this.#records.start();
    await served.keepOnly(new Set(this.#deployments.keys()));
    await this.#resumed();
  }

  find(target: CallTarget, principal: Principal): Located | Promise<Located> {
    const record = this.#options.routing.find(target, principal);
    return record instanceof Promise
      ? record.then((found) => this.#locate(found))
      : this.#locate(record);
  }

  async readiness({ named, header, host }: CallTarget): Promise<boolean | undefined> {
    const { routing } = this.#options;
    if (!routing.names({ host, header })) {
      return undefined;
    }
    const located = await this.find({ named, header, host }, ANONYMOUS);
    return this.#deployments.get(located.facts.deploymentId)?.reconciler.isReady ?? false;
  }

  /** The node's shares may be others. */
  rescale(): void {
    for (const { reconciler } of this.#deployments.values()) {
      reconciler.rescale();
    }
  }

  /** The storage may have forgotten what the node reported. */
  reportAll(): void {
    this.#reports.forget();
  }

  /** Takes no more work and lets what runs finish, within `drainMs`; the same promise every time. */
  drain(drainMs: number): Promise<void> {
    this.#drained ??= this.#drain(drainMs);
    return this.#drained;
  }

  /** Ends every worker at once, for the moment in which the node's own process ends. */
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
    await this.#records[Symbol.asyncDispose]();
    await Promise.all(
      [...this.#deployments.values()].map((deployment) => end(deployment, drainMs)),
    );
    await Promise.all(this.#ending);
    await this.#reports[Symbol.asyncDispose]();
  }

  async #resumed(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RESUME_MS);
    });
    const resumed = [...this.#deployments.values()].map(({ reconciler }) => reconciler.resumed);
    await Promise.race([Promise.all(resumed), timeUp]);
    clearTimeout(timer);
  }

  /** The deployment as callers reach it here; one that this node has not heard of yet is looked at first. */
  #locate(record: DeploymentRecord): Located | Promise<Located> {
    const { deploymentId, targetRevision } = record;
    const located: Located = { facts: record, deployment: () => this.#running(record) };
    return this.#deployments.has(deploymentId) || targetRevision === undefined || this.#draining
      ? located
      : this.#records.lookAt(deploymentId).then(() => located);
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
      const onChange = (): void => this.#reports.changed(deploymentId);
      this.#deployments.set(deploymentId, openNodeDeployment(record, this.#options, onChange));
      onChange();
    } else if (record.version >= deployment.reconciler.record.version) {
      // A read that began earlier may end later.
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

  /** One that was deleted: nobody waits for what it runs. */
  async #forget(deployment: NodeDeployment): Promise<void> {
    const { served, log } = this.#options;
    const { deploymentId, organizationId } = deployment.reconciler.record;
    try {
      await end(deployment, 0);
      await this.#reports.withdraw({ organizationId, deploymentId });
      await served.delete(deploymentId);
    } catch (err) {
      log.error({ err, deploymentId }, "a deleted deployment could not be ended in good order");
    }
  }
}

async function end({ reconciler, lines }: NodeDeployment, drainMs: number): Promise<void> {
  await reconciler.end(drainMs);
  await lines[Symbol.asyncDispose]();
}
