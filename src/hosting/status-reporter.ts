/**
 * A write-behind reporter of deployment status: writes to the storage soon after a
 * change, many deployments at once, and only reports that differ from the last.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentKey } from "../storage/hosting/deployment-key.ts";
import type { DeploymentReport, NodeStorage } from "../storage/hosting/nodes.ts";

/**
 * Delay of the write-behind of deployment statuses: workers come and go quickly, and readers
 * of the status need not see each step.
 */
const STATUS_WRITE_DELAY_MS = 250;

/** Pause after a write of deployment statuses that failed. */
const STATUS_RETRY_PAUSE_MS = 2_000;

interface StatusReporterOptions {
  readonly hosting: Pick<NodeStorage, "reportDeployments" | "withdrawReports">;
  readonly nodeId: string;
  readonly now: () => number;
  readonly log: Log;
  /** The current report of a deployment; undefined when it is gone. */
  readonly reportOf: (deploymentId: string) => DeploymentReport | undefined;
}

export class StatusReporter implements AsyncDisposable {
  readonly #options: StatusReporterOptions;
  readonly #changed = new Set<string>();
  /** The last report of each deployment, as JSON. */
  readonly #reported = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isAway = false;
  #ended = false;

  constructor(options: StatusReporterOptions) {
    this.#options = options;
  }

  /** The report of this deployment may have changed. */
  changed(deploymentId: string): void {
    this.#changed.add(deploymentId);
    this.#schedule(STATUS_WRITE_DELAY_MS);
  }

  /** Reports everything again: the storage dropped the reports of a node that seemed dead. */
  forget(): void {
    for (const deploymentId of this.#reported.keys()) {
      this.#reported.delete(deploymentId);
      this.changed(deploymentId);
    }
  }

  /** Deletes the report of a deployment that was deleted. */
  async withdraw(deployment: DeploymentKey): Promise<void> {
    const { hosting, nodeId, log } = this.#options;
    this.#changed.delete(deployment.deploymentId);
    await this.#writing;
    this.#reported.delete(deployment.deploymentId);
    await hosting.withdrawReports({ nodeId, deployments: [deployment] }).catch((err: unknown) => {
      log.warn({ err }, "the report of a deployment could not be withdrawn; it goes with the node");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#writing;
  }

  #schedule(afterMs: number): void {
    if (!this.#ended) {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#writing = this.#writing.then(() => this.#write());
      }, afterMs);
    }
  }

  async #write(): Promise<void> {
    const { hosting, nodeId, now, log, reportOf } = this.#options;
    const ids = [...this.#changed];
    this.#changed.clear();
    const reports = ids.flatMap((deploymentId) => reportOf(deploymentId) ?? []);
    const news = reports.filter((report) => {
      return this.#reported.get(report.deploymentId) !== JSON.stringify(report);
    });
    if (news.length === 0) {
      return;
    }
    try {
      await hosting.reportDeployments({ nowMs: now(), nodeId, reports: news });
      for (const report of news) {
        this.#reported.set(report.deploymentId, JSON.stringify(report));
      }
      this.#isAway = false;
    } catch (err) {
      if (!this.#isAway) {
        log.warn({ err }, "the state of deployments could not be reported");
      }
      this.#isAway = true;
      for (const { deploymentId } of news) {
        this.#changed.add(deploymentId);
      }
      this.#schedule(STATUS_RETRY_PAUSE_MS);
    }
  }
}
