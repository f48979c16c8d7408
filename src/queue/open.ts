import type { MetricsOf } from "../metrics/metrics.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { Expirer } from "./expirer.ts";
import type { Notifier } from "./notifier.ts";
import { Peers } from "./peers.ts";
import { Queue, type QueueOptions } from "./queue.ts";

/** The queue of one deployment with what works on it. */
export interface OpenQueue {
  readonly queue: Queue;
  readonly dispatcher: Dispatcher;
  /** Starts no more tasks and fails none; callers can still ask. */
  stop(): Promise<void>;
}

/** Opens the queue of a deployment; its dispatcher begins with the first manifest. */
export function openQueue(
  options: Omit<QueueOptions, "dispatcher" | "expirer" | "peers"> &
    DispatcherOptions & {
      /** How nodes tell each other; undefined where there is one node only. */
      readonly notifier: Notifier | undefined;
      readonly metricsOf?: MetricsOf | undefined;
    },
): OpenQueue {
  const { changes, metricsOf } = options;
  const dispatcher = new Dispatcher(options);
  const expirer = new Expirer({
    ...options,
    onExpired: (tasks) => {
      for (const task of tasks) {
        changes.publish(task.taskId, task);
        // It may be another deployment's: whoever looks first fails them all.
        metricsOf?.(task.deploymentId)?.taskFinished(task.endpoint, "expired", undefined);
      }
    },
  });
  expirer.start();
  const { notifier } = options;
  const peers = notifier && new Peers({ ...options, notifier, dispatcher });
  return {
    queue: new Queue({ ...options, dispatcher, expirer, peers }),
    dispatcher,
    stop: async () => {
      await dispatcher[Symbol.asyncDispose]();
      await expirer[Symbol.asyncDispose]();
      await peers?.[Symbol.asyncDispose]();
    },
  };
}
