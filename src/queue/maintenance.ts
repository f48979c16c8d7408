/**
 * What a node does again and again for the queues of all its deployments. A
 * round is two questions to the storage, however many deployments and workers
 * there are.
 *
 * The first prolongs the leases of all workers. That comes from here, not from
 * user code, so that a function which blocks its event loop keeps its lease;
 * its timeout bounds it instead. Nothing else is waited for between two of
 * these, and they alone say whether the storage answers: whatever becomes of
 * the rest, what runs goes on. (A node without leases judges by the second.)
 *
 * The second, `survey`, finds what there is to do. More is asked only where it
 * finds something, each for itself, so that one that fails or takes long holds
 * up no other:
 *
 *   - Leases that expired, of whichever node, end: their tasks go back.
 *   - Tasks that were to start by now, and did not, fail (`expirer.ts`).
 *   - Deployments hear where a task could be claimed. That is the floor under
 *     all hints: one that got lost costs at most one round.
 *   - Where there are other nodes, callers who wait look for themselves, and
 *     aborts are looked for.
 *
 * What is found belongs to one deployment, and is told to that one, since it
 * knows who waits for it. For one that does not run here, other nodes are told.
 */

import type { Log } from "../log/log.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage, Survey } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { SingleFlight } from "../time/single-flight.ts";
import { Timer } from "../time/timer.ts";
import { Expirer } from "./expirer.ts";
import { LEASE_MS, Leases } from "./leases.ts";
import type { MaintainedQueue } from "./maintained-queue.ts";
import { RemoteChanges } from "./remote-changes.ts";

/** A quarter of a lease, so that three rounds may fail. */
const ROUND_MS = 5_000;

/** After a round that failed: the node is not ready before one succeeds. */
const AGAIN_MS = 1_000;

export interface MaintenanceOptions {
  readonly storage: Storage;
  /** How nodes tell each other; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  readonly log: Log;
  readonly now: () => number;
}

export class Maintenance implements AsyncDisposable {
  readonly leases: Leases;
  /** Told of tasks with a deadline, it fails them in time. */
  readonly expirer: Expirer;
  readonly #options: MaintenanceOptions;
  readonly #queues = new Map<string, MaintainedQueue>();
  readonly #unsubscribe: () => void;
  readonly #renewal = new SingleFlight(() => this.#renew());
  readonly #survey = new SingleFlight(() => this.#lookAround());
  readonly #rescue = new SingleFlight(() => this.#rescueExpired());
  readonly #remoteChanges: RemoteChanges | undefined;
  #timer: Timer | undefined;
  #failed = false;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
    this.leases = new Leases({ ...options, onRescued: (tasks) => this.#rescued(tasks) });
    this.expirer = new Expirer({ ...options, onExpired: (tasks) => this.#expired(tasks) });
    this.#remoteChanges =
      options.notifier && new RemoteChanges({ ...options, queues: this.#queues });
    this.#unsubscribe =
      options.notifier?.subscribe(({ kind }) => {
        if (kind === "look") {
          void this.look();
        }
      }) ?? (() => {});
  }

  /**
   * Returns the attempts of nodes that are gone to the queue, or, where no
   * other node can use the storage, all of them; and begins.
   */
  async start(): Promise<void> {
    const { storage, now } = this.#options;
    const all = !storage.capabilities.shared;
    this.#rescued(await storage.rescueExpired({ nowMs: now(), all }));
    void this.expirer.look();
    this.#timer = new Timer(
      () => (this.#failed ? AGAIN_MS : ROUND_MS),
      async () => {
        await this.#renewal.run();
        const surveyed = this.#survey.run();
        if (this.leases.held.length === 0) {
          await surveyed;
        }
      },
      () => {}, // It has been told already.
    );
  }

  /** From now on, this deployment is told what concerns it; until the answer is called. */
  register(deploymentId: string, queue: MaintainedQueue): () => void {
    this.#queues.set(deploymentId, queue);
    return () => {
      if (this.#queues.get(deploymentId) === queue) {
        this.#queues.delete(deploymentId);
      }
    };
  }

  /** A round that begins after this call; what it finds is under way when it returns. Never rejects. */
  async look(): Promise<void> {
    await this.#renewal.run();
    await this.#survey.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe();
    await this.#timer?.[Symbol.asyncDispose]();
    await this.#renewal[Symbol.asyncDispose]();
    await this.#survey[Symbol.asyncDispose]();
    await this.#rescue[Symbol.asyncDispose]();
    await this.#remoteChanges?.[Symbol.asyncDispose]();
    await this.expirer[Symbol.asyncDispose]();
    await this.leases[Symbol.asyncDispose]();
  }

  async #renew(): Promise<void> {
    const { storage, log, now } = this.#options;
    const leaseIds = this.leases.held;
    if (leaseIds.length === 0) {
      return;
    }
    try {
      const renewed = await storage.renewLeases({ leaseIds, nowMs: now(), ttlMs: LEASE_MS });
      this.leases.renewed(leaseIds, renewed);
      this.#told(true);
    } catch (err) {
      this.#told(false);
      log.error({ err }, "leases could not be renewed");
    }
  }

  async #lookAround(): Promise<void> {
    const { storage, log, now } = this.#options;
    const decides = this.leases.held.length === 0;
    if (this.#failed && !decides) {
      return;
    }
    try {
      const deploymentIds = [...this.#queues.keys()];
      this.#found(await storage.survey({ nowMs: now(), deploymentIds }));
      if (decides) {
        this.#told(true);
      }
    } catch (err) {
      if (decides) {
        this.#told(false);
      }
      log.error({ err }, "tasks that wait could not be looked for");
    }
  }

  #found({ expiredLeases, overdueTasks, due }: Survey): void {
    for (const { deploymentId, endpoint } of due) {
      this.#queues.get(deploymentId)?.onDue(endpoint);
    }
    if (expiredLeases) {
      void this.#rescue.run();
    }
    if (overdueTasks) {
      void this.expirer.look();
    }
    void this.#remoteChanges?.look();
  }

  async #rescueExpired(): Promise<void> {
    const { storage, log, now } = this.#options;
    try {
      this.#rescued(await storage.rescueExpired({ nowMs: now() }));
    } catch (err) {
      log.error({ err }, "tasks of workers that are gone could not be returned to the queue");
    }
  }

  #told(answers: boolean): void {
    this.#failed = !answers;
    for (const queue of this.#queues.values()) {
      queue.onStorage(answers);
    }
  }

  #rescued(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const queue = this.#queues.get(task.deploymentId);
      if (queue) {
        queue.onRescued(task);
      } else {
        this.#tellOthers(task);
      }
    }
  }

  #expired(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const queue = this.#queues.get(task.deploymentId);
      if (queue) {
        queue.onExpired(task);
      } else {
        this.#tellOthers(task);
      }
    }
  }

  #tellOthers({ deploymentId, endpoint, taskId, status }: Task): void {
    const { notifier } = this.#options;
    notifier?.publish({ kind: "changed", taskId });
    if (status === "queued") {
      notifier?.publish({ kind: "queued", deploymentId, endpoint });
    }
  }
}
