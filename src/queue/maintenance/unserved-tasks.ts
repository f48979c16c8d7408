/**
 * Unserved tasks: queued tasks of endpoints that the deployment's revision lacks
 * or serves as an api, so that no worker ever claims them. They are looked for
 * after a deploy and when maintenance finds some, claimed under a lease of their
 * own, and failed.
 */

import type { Log } from "../../log/log.ts";
import type { ClaimedTask, Storage } from "../../storage/storage.ts";
import type { TaskFailure } from "../../tasks/task.ts";
import { attemptOf, type Completer } from "../completer.ts";
import type { Leases } from "./leases.ts";

/** Unserved tasks of one endpoint failed in one go. */
const MAX_UNSERVED_TASKS = 200;

/**
 * Least time between two looks at unserved tasks that are not to be failed yet, which every
 * round of maintenance finds.
 */
const UNSERVED_TASKS_RETRY_MS = 30_000;

/** What the serving revision says of tasks that it cannot run. */
export interface UnservedPolicy {
  /** Why a claimed task cannot run; undefined when it can. */
  refusal(claimed: ClaimedTask): TaskFailure | undefined;
  /** True for an endpoint whose tasks no worker claims. */
  lacks(endpoint: string): boolean;
}

interface UnservedTasksOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly maintenance: { readonly leases: Leases };
  readonly completer: Completer;
  readonly log: Log;
  readonly newId: () => string;
  readonly now: () => number;
  readonly revisions: UnservedPolicy;
}

export class UnservedTasks implements AsyncDisposable {
  readonly #options: UnservedTasksOptions;
  #looking: Promise<void> | undefined;
  /** When tasks that must not fail yet were last given back. */
  #gaveBackMs = Number.NEGATIVE_INFINITY;
  readonly #end = Promise.withResolvers<void>();
  #ended = false;

  constructor(options: UnservedTasksOptions) {
    this.#options = options;
  }

  /** Maintenance found some: looks, unless tasks were given back within the last 30 s. */
  found(): void {
    if (performance.now() - this.#gaveBackMs >= UNSERVED_TASKS_RETRY_MS) {
      this.look();
    }
  }

  /** Looks for unserved tasks now and fails them. */
  look(): void {
    this.#look().catch((err: unknown) => this.#report(err));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#end.resolve();
    await this.#looking?.catch(() => {
      // `look` has reported it.
    });
  }

  #look(): Promise<void> {
    this.#looking ??= this.#failAll().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #failAll(): Promise<void> {
    const { deploymentId, storage, maintenance, newId, revisions } = this.#options;
    const { leases } = maintenance;
    const counts = await storage.countTasks({ deploymentId });
    const endpoints = counts.filter(
      ({ endpoint, queued }) => queued > 0 && revisions.lacks(endpoint),
    );
    if (endpoints.length === 0 || this.#ended) {
      return;
    }
    const leaseId = newId();
    // Nothing runs under this lease; if another node ends it, its tasks go back to the queue.
    await leases.open(leaseId, () => {});
    try {
      for (const { endpoint } of endpoints) {
        await this.#fail(endpoint, leaseId);
      }
      await Promise.race([this.#options.completer.recorded(), this.#end.promise]);
    } finally {
      leases.close(leaseId);
    }
  }

  async #fail(endpoint: string, leaseId: string): Promise<void> {
    const { deploymentId, storage, completer, now, revisions } = this.#options;
    for (let all = true; all && !this.#ended; ) {
      const claims = [{ endpoint, leaseId, limit: MAX_UNSERVED_TASKS }];
      const { tasks } = await storage.claimTasks({ deploymentId, nowMs: now(), claims });
      const refused = tasks.filter((each) => {
        const failure = revisions.refusal(each);
        if (failure === undefined) {
          completer.giveBack(attemptOf(each));
          this.#gaveBackMs = performance.now();
          return false;
        }
        completer.refuse(each, failure);
        return true;
      });
      all = refused.length === MAX_UNSERVED_TASKS;
    }
  }

  #report(err: unknown): void {
    this.#options.log.error({ err }, "tasks of endpoints that are gone could not be failed");
  }
}
