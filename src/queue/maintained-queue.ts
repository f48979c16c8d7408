/** A deployment as the rounds of its node visit it: what becomes there of what they found. */
import type { DeploymentMetrics } from "../metrics/deployment.ts";
import type { Task } from "../tasks/task.ts";
import type { Attempts } from "./attempts.ts";
import type { Changes } from "./changes.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { RemoteHints } from "./remote-hints.ts";
import type { UnservedTasks } from "./unserved-tasks.ts";

export interface MaintainedQueue {
  /** A task of its went back to the queue, or failed, because its worker is gone. */
  onRescued(task: Task): void;
  /** A task of its was not started in time, and has failed. */
  onExpired(task: Task): void;
  /** A task of this endpoint could be claimed. */
  onDue(endpoint: string): void;
  /** The tasks that callers wait for here. */
  awaited(): readonly string[];
  /** Another node may have changed one of these without telling this one. */
  onMissed(taskId: string): void;
  /** The storage answered a round, or did not. */
  onStorage(answers: boolean): void;
  /** The leases under which its attempts run here. */
  leaseIds(): readonly string[];
  /** Aborts a task, if it runs here. */
  abort(taskId: string): void;
}

export interface MaintainedQueueParts {
  readonly dispatcher: Dispatcher;
  readonly remoteHints: RemoteHints;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly unserved: UnservedTasks | undefined;
  readonly metrics: DeploymentMetrics | undefined;
  readonly now: () => number;
  /** True for an endpoint whose tasks nobody runs any more. */
  readonly lacks: (endpoint: string) => boolean;
  /** The storage answered a round, or did not. */
  onRound(answers: boolean): void;
}

export function maintainedQueue(parts: MaintainedQueueParts): MaintainedQueue {
  const { dispatcher, remoteHints, attempts, changes, unserved, metrics, now } = parts;
  return {
    onRescued(task) {
      changes.publish(task.taskId, task);
      const isQueued = task.status === "queued";
      metrics?.taskFinished(task.endpoint, isQueued ? "returned" : "failure", undefined);
      if (isQueued) {
        dispatcher.requeued(task.endpoint, now());
      }
    },
    onExpired(task) {
      changes.publish(task.taskId, task);
      metrics?.taskFinished(task.endpoint, "expired", undefined);
    },
    onDue(endpoint) {
      if (parts.lacks(endpoint)) {
        unserved?.found();
      } else {
        remoteHints.hint(endpoint);
      }
    },
    awaited: () => changes.awaited,
    onMissed: (taskId) => changes.hear(taskId),
    onStorage: (answers) => parts.onRound(answers),
    leaseIds: () => attempts.leaseIds(),
    abort: (taskId) => void attempts.abort(taskId),
  };
}
