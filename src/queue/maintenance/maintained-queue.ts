/**
 * A deployment's queue as the node's maintenance sees it: the receiver of what
 * maintenance finds for that deployment.
 */
import type { DeploymentMetrics } from "../../metrics/deployment.ts";
import type { Task } from "../../tasks/task.ts";
import type { Attempts } from "../attempts.ts";
import type { Dispatcher } from "../dispatcher.ts";
import type { RemoteHints } from "../remote-hints.ts";
import type { Changes } from "../waits/changes.ts";
import type { UnservedTasks } from "./unserved-tasks.ts";

export interface MaintainedQueue {
  /** A task went back to the queue, or failed, because its worker is gone. */
  onRescued(task: Task): void;
  /** A task missed its start deadline and has failed. */
  onExpired(task: Task): void;
  /** A task of this endpoint can be claimed. */
  onDue(endpoint: string): void;
  /** Tells how many suspects of this endpoint can be claimed. */
  onSuspects(endpoint: string, count: number): void;
  /** Ids of the tasks that callers wait for here. */
  awaited(): readonly string[];
  /** Another node may have changed this awaited task while its hint got lost. */
  onMissed(taskId: string): void;
  /** The storage answered the node's maintenance, or failed to. */
  onStorage(answers: boolean): void;
  /** Ids of the leases under which its attempts run here. */
  leaseIds(): readonly string[];
  /** Aborts a task if it runs here. */
  abort(taskId: string): void;
}

interface MaintainedQueueParts {
  readonly dispatcher: Dispatcher;
  readonly remoteHints: RemoteHints;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly unserved: UnservedTasks | undefined;
  readonly metrics: DeploymentMetrics | undefined;
  /** True when workers serve on this node, or will. */
  readonly hasWorkers: () => boolean;
  /** True for an endpoint whose tasks no worker claims. */
  readonly lacks: (endpoint: string) => boolean;
  /** The storage answered the node's maintenance, or failed to. */
  onMaintenance(answers: boolean): void;
}

export function maintainedQueue(parts: MaintainedQueueParts): MaintainedQueue {
  const { dispatcher, remoteHints, attempts, changes, unserved, metrics } = parts;
  return {
    onRescued(task) {
      changes.publish(task.taskId, task);
      const isQueued = task.status === "queued";
      metrics?.taskFinished(task.endpoint, isQueued ? "returned" : "failure", undefined);
      if (isQueued) {
        dispatcher.requeued(task.endpoint, task.runAtMs);
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
    onSuspects(endpoint, count) {
      // A node without workers starts none for it.
      if (parts.hasWorkers()) {
        dispatcher.suspects(endpoint, count);
      }
    },
    awaited: () => changes.awaited,
    onMissed: (taskId) => changes.hear(taskId),
    onStorage: (answers) => parts.onMaintenance(answers),
    leaseIds: () => attempts.leaseIds(),
    abort: (taskId) => void attempts.abort(taskId),
  };
}
