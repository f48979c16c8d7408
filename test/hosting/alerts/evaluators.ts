/** The evaluator of a node that runs nothing, and has measured what a test says. */
import { pino } from "pino";
import { Evaluator } from "../../../src/hosting/alerts/evaluator.ts";
import type { HistoryAnswer, TasksAnswer } from "../../../src/metrics/history/history.ts";
import { NO_TASKS, TaskTally } from "../../../src/metrics/history/task-tally.ts";
import type { HostingStorage } from "../../../src/storage/hosting/hosting.ts";
import type { Storage } from "../../../src/storage/storage.ts";

/** The deployment of which it has measured something. */
const DEPLOYMENT = "summarizer-id";

/** Within ten minutes. */
export interface Measured {
  readonly failed: number;
  readonly succeeded: number;
  readonly restarts: number;
}

/** The history of workers that were restarted so often. */
export const restarted = (times: number): HistoryAnswer => ({
  ...{ fromMs: 0, stepMs: 10_000, points: 2, truncated: false, leftOut: new Map() },
  series: [
    {
      ...{ name: "worker_restarts", custom: false, statistic: "rate", labels: {} },
      values: [Number.NaN, times / 10],
      whole: times / 10,
    },
  ],
});

interface EvaluatorOnOptions {
  readonly now: () => number;
  readonly newId: () => string;
  readonly measured: () => Measured;
  /** Called when it counts tasks that have failed. */
  readonly onFailures?: () => void;
  /** Default: that of the storage. */
  readonly hosting?: HostingStorage;
}

export function evaluatorOn(
  storage: Storage,
  { now, newId, measured, onFailures, hosting = storage.hosting }: EvaluatorOnOptions,
): Evaluator {
  return new Evaluator({
    ...{ accounts: storage.accounts, hosting, storage, now, newId },
    history: {
      tasks: async (): Promise<TasksAnswer> => {
        onFailures?.();
        const { failed, succeeded } = measured();
        const tally = new TaskTally();
        tally.add(DEPLOYMENT, "work", { ...NO_TASKS, failed, succeeded });
        return { fromMs: 0, toMs: now(), tally };
      },
      read: async ({ deployment }) =>
        restarted(
          deployment === undefined || deployment.deploymentId === DEPLOYMENT
            ? measured().restarts
            : 0,
        ),
    },
    whyQueued: (_deploymentId, { endpoint }) => `${endpoint} is paused`,
    changes: { listen: () => () => {} },
    platformUrl: "https://tessera.example.com",
    log: pino({ level: "silent" }),
  });
}
