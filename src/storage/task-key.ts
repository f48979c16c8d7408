/** What identifies a task and one attempt of it, in every part of the storage port. */

export interface TaskKey {
  readonly deploymentId: string;
  readonly taskId: string;
}

/** Identifies one attempt of a task, with the lease that it runs under. */
export interface Attempt extends TaskKey {
  readonly leaseId: string;
  readonly attempt: number;
}
