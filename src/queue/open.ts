import type { Notifier } from "../storage/notifier.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { type VisitedParts, visited } from "./maintained-queue.ts";
import type { Rounds } from "./maintenance.ts";
import { Peers } from "./peers.ts";
import { Queue } from "./queue.ts";
import type { QueueOptions } from "./queue-options.ts";
import { OthersFirst } from "./remote-hints.ts";
import type { AbandonedTasks } from "./unserved-tasks.ts";

/** The queue of one deployment with what works on it. */
export interface OpenQueue extends Disposable {
  readonly queue: Queue;
  readonly dispatcher: Dispatcher;
  /** Starts no more tasks; callers can still ask, and are told what becomes of those that run. */
  stop(): Promise<void>;
}

/** Opens the queue of a deployment; its dispatcher begins with the first manifest. */
export function openQueue(
  options: Omit<QueueOptions, "dispatcher" | "expirer" | "peers"> &
    Omit<VisitedParts, "dispatcher" | "othersFirst"> &
    DispatcherOptions & {
      /** How nodes tell each other; undefined where there is one node only. */
      readonly notifier: Notifier | undefined;
      readonly abandoned: AbandonedTasks | undefined;
      readonly rounds: Rounds;
    },
): OpenQueue {
  const { deploymentId, notifier, pool, rounds } = options;
  const { expirer } = rounds;
  const dispatcher = new Dispatcher(options);
  const othersFirst = new OthersFirst({ dispatcher, pool, shared: notifier !== undefined });
  const parts = { ...options, dispatcher, othersFirst };
  const peers = notifier && new Peers({ ...parts, notifier });
  const leave = rounds.visit(deploymentId, visited(parts));
  return {
    queue: new Queue({ ...parts, expirer, peers }),
    dispatcher,
    async stop() {
      othersFirst[Symbol.dispose]();
      await dispatcher[Symbol.asyncDispose]();
      peers?.[Symbol.dispose]();
    },
    [Symbol.dispose]: leave,
  };
}
