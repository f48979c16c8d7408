/**
 * A periodic reporter of workers, for the other nodes of a platform: writes what has changed
 * since the last round. A node's own callers read the workers from the node itself, so a
 * node that is alone on its database needs none.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentKey } from "../storage/hosting/deployment-key.ts";
import type { NodeStorage, NodeWorkers } from "../storage/hosting/nodes.ts";
import { Timer } from "../time/timer.ts";

/** Interval at which a node tells the others of its workers: how old is what people see of them. */
const WORKER_REPORT_INTERVAL_MS = 5_000;

/** Deployments whose workers are written in one transaction. */
const MAX_WORKER_REPORTS_PER_WRITE = 100;

export interface WorkerReporterOptions {
  readonly hosting: Pick<NodeStorage, "reportWorkers">;
  readonly nodeId: string;
  readonly log: Log;
  /** The workers of all deployments of this node. */
  readonly workers: () => readonly (DeploymentKey & NodeWorkers)[];
}

export class WorkerReporter implements AsyncDisposable {
  readonly #options: WorkerReporterOptions;
  /** What was stored last of each deployment, as JSON. */
  readonly #reported = new Map<string, string>();
  readonly #timer: Timer;
  #isAway = false;

  constructor(options: WorkerReporterOptions) {
    this.#options = options;
    this.#timer = new Timer(
      WORKER_REPORT_INTERVAL_MS,
      () => this.report(),
      (err) => {
        if (!this.#isAway) {
          options.log.warn({ err }, "the workers could not be reported");
        }
        this.#isAway = true;
      },
    );
  }

  /** Reports everything again: the storage dropped the reports of a node that seemed dead. */
  forget(): void {
    this.#reported.clear();
  }

  /** Writes what has changed. */
  async report(): Promise<void> {
    const { hosting, nodeId, workers } = this.#options;
    const all = workers();
    const there = new Set(all.map(({ deploymentId }) => deploymentId));
    for (const deploymentId of this.#reported.keys()) {
      if (!there.has(deploymentId)) {
        this.#reported.delete(deploymentId);
      }
    }
    const news = all.filter(
      (one) => (this.#reported.get(one.deploymentId) ?? NONE) !== textOf(one),
    );
    for (let from = 0; from < news.length; from += MAX_WORKER_REPORTS_PER_WRITE) {
      const reports = news.slice(from, from + MAX_WORKER_REPORTS_PER_WRITE);
      const stored = new Set(await hosting.reportWorkers({ nodeId, reports }));
      for (const report of reports) {
        // One without a report of its status yet is tried again.
        if (stored.has(report.deploymentId)) {
          this.#reported.set(report.deploymentId, textOf(report));
        }
      }
    }
    this.#isAway = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer[Symbol.asyncDispose]();
  }
}

function textOf({ workers, omitted, wanted, launched }: NodeWorkers): string {
  return JSON.stringify({ workers, omitted, wanted, launched });
}

const NONE = textOf({ workers: [], omitted: 0 });
