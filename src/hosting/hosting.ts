/**
 * The deployments of a node. Every node has every deployment, with its share
 * of the workers, so any node serves any request, and when a node dies the
 * others only have to start more workers.
 */
import type { ChangeFeed } from "../auth/changes.ts";
import type { Principal } from "../auth/principal.ts";
import type { HostedDeployment } from "../deployments/deployment.ts";
import type { Directory, Located, Target } from "../deployments/directory.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { HostedRecord } from "../storage/hosting/revisions.ts";
import { Records } from "./desired-state.ts";
import { openTenant, type Tenant, type TenantOptions } from "./node-deployment.ts";
import { empty, starting } from "./refusals.ts";
import type { Routing } from "./routing.ts";
import { Reports } from "./status-reporter.ts";

/** How long a node that starts waits for artifacts to be there; the others are there later. */
const RESUME_MS = 15_000;

const ANONYMOUS: Principal = { kind: "anonymous" };

export interface HostingOptions extends TenantOptions {
  readonly routing: Routing;
  readonly changes: ChangeFeed;
}

export class Hosting implements Directory, AsyncDisposable {
  readonly #options: HostingOptions;
  readonly #records: Records;
  readonly #reports: Reports;
  readonly #tenants = new Map<string, Tenant>();
  /** Deployments that end, because they were deleted. */
  readonly #ending = new Set<Promise<void>>();
  #draining = false;
  #drained: Promise<void> | undefined;

  constructor(options: HostingOptions) {
    const { hosting, nodes, changes, log } = options;
    this.#options = options;
    this.#reports = new Reports({
      hosting,
      nodeId: nodes.nodeId,
      log,
      reportOf: (deploymentId) => this.#tenants.get(deploymentId)?.resident.report(),
    });
    this.#records = new Records({
      ...{ hosting, changes, log },
      known: () => [...this.#tenants.keys()],
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
    await served.keepOnly(new Set(this.#tenants.keys()));
    await this.#resumed();
  }

  find(target: Target, principal: Principal): Located | Promise<Located> {
    const record = this.#options.routing.find(target, principal);
    return record instanceof Promise
      ? record.then((found) => this.#locate(found))
      : this.#locate(record);
  }

  async readiness({ named, header, host }: Target): Promise<boolean | undefined> {
    const { routing } = this.#options;
    if (!routing.names({ host, header })) {
      return undefined;
    }
    const located = await this.find({ named, header, host }, ANONYMOUS);
    return this.#tenants.get(located.facts.deploymentId)?.resident.isReady ?? false;
  }

  /** The node's shares may be others. */
  rescale(): void {
    for (const { resident } of this.#tenants.values()) {
      resident.rescale();
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
    for (const { resident } of this.#tenants.values()) {
      resident.abandon();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0);
  }

  async #drain(drainMs: number): Promise<void> {
    this.#draining = true;
    await this.#records[Symbol.asyncDispose]();
    await Promise.all([...this.#tenants.values()].map((tenant) => end(tenant, drainMs)));
    await Promise.all(this.#ending);
    await this.#reports[Symbol.asyncDispose]();
  }

  async #resumed(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RESUME_MS);
    });
    const resumed = [...this.#tenants.values()].map(({ resident }) => resident.resumed);
    await Promise.race([Promise.all(resumed), timeUp]);
    clearTimeout(timer);
  }

  /** The deployment as callers reach it here; one that this node has not heard of yet is looked at first. */
  #locate(record: DeploymentRecord): Located | Promise<Located> {
    const { deploymentId, targetRevision } = record;
    const located: Located = { facts: record, hosted: () => this.#hosted(record) };
    return this.#tenants.has(deploymentId) || targetRevision === undefined || this.#draining
      ? located
      : this.#records.lookAt(deploymentId).then(() => located);
  }

  #hosted(record: DeploymentRecord): HostedDeployment {
    const tenant = this.#tenants.get(record.deploymentId);
    if (tenant) {
      return tenant.resident.hosted;
    }
    throw record.targetRevision === undefined ? empty(record) : starting(record);
  }

  #apply(record: HostedRecord): void {
    const { deploymentId } = record;
    const tenant = this.#tenants.get(deploymentId);
    if (this.#draining || record.targetRevision === undefined) {
      return;
    }
    if (tenant === undefined) {
      const onChange = (): void => this.#reports.changed(deploymentId);
      this.#tenants.set(deploymentId, openTenant(record, this.#options, onChange));
      onChange();
    } else if (record.version >= tenant.resident.record.version) {
      // A read that began earlier may end later.
      tenant.resident.want(record);
    }
  }

  #remove(deploymentId: string): void {
    const tenant = this.#tenants.get(deploymentId);
    if (tenant !== undefined) {
      this.#tenants.delete(deploymentId);
      const ending = this.#forget(tenant).finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
  }

  /** One that was deleted: nobody waits for what it runs. */
  async #forget(tenant: Tenant): Promise<void> {
    const { served, log } = this.#options;
    const { deploymentId, organizationId } = tenant.resident.record;
    try {
      await end(tenant, 0);
      await this.#reports.withdraw({ organizationId, deploymentId });
      await served.delete(deploymentId);
    } catch (err) {
      log.error({ err, deploymentId }, "a deleted deployment could not be ended in good order");
    }
  }
}

async function end({ resident, lines }: Tenant, drainMs: number): Promise<void> {
  await resident.end(drainMs);
  await lines[Symbol.asyncDispose]();
}
