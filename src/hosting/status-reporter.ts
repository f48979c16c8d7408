/**
 * What the node reports of its deployments, on its way into the storage: soon
 * after something changed, many at once, and only what is another than before.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentKey } from "../storage/hosting/deployment-key.ts";
import type { DeploymentReport, NodeStorage } from "../storage/hosting/nodes.ts";

/** Workers come and go in no time; who looks at the status need not see each step. */
const WRITE_AFTER_MS = 250;

const AGAIN_MS = 2_000;

export interface StatusReporterOptions {
  readonly hosting: Pick<NodeStorage, "reportDeployments" | "withdrawReports">;
  readonly nodeId: string;
  readonly log: Log;
  /** What there is to report of a deployment; undefined when it is not here any more. */
  readonly reportOf: (deploymentId: string) => DeploymentReport | undefined;
}

export class StatusReporter implements AsyncDisposable {
  readonly #options: StatusReporterOptions;
  readonly #changed = new Set<string>();
  /** What was reported last, as text. */
  readonly #reported = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isAway = false;
  #ended = false;

  constructor(options: StatusReporterOptions) {
    this.#options = options;
  }

  /** Something about this deployment may be another than before. */
  changed(deploymentId: string): void {
    this.#changed.add(deploymentId);
    this.#schedule(WRITE_AFTER_MS);
  }

  /** The storage may have lost what was reported: the node was taken for dead. */
  forget(): void {
    for (const deploymentId of this.#reported.keys()) {
      this.#reported.delete(deploymentId);
      this.changed(deploymentId);
    }
  }

  /** There is nothing to say of this deployment any more. */
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
    const { hosting, nodeId, log, reportOf } = this.#options;
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
      await hosting.reportDeployments({ nodeId, reports: news });
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
      this.#schedule(AGAIN_MS);
    }
  }
}
