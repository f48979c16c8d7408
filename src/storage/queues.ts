/** What storage tells of the queues of endpoints. */

export interface DueCount {
  readonly endpoint: string;
  readonly due: number;
}

export interface OldestWaiting {
  readonly endpoint: string;
  readonly dueAtMs: number;
}

export interface QueueCount {
  readonly endpoint: string;
  readonly queued: number;
  readonly running: number;
}

export interface QueueState extends QueueCount {
  readonly deploymentId: string;
  /** When the task that is due longest became due; undefined when none is due. */
  readonly oldestDueAtMs: number | undefined;
}
