/**
 * The node's periodic maintenance for the queues of all its deployments. Every
 * 5 s one pass asks the storage two questions, however many deployments and
 * workers there are.
 *
 * The first renews the leases of all workers. The node renews them, not user
 * code, so a function that blocks its event loop keeps its lease; its timeout
 * bounds it instead. Renewal waits for nothing else and alone decides whether
 * the storage answers, so running tasks go on even if the rest fails. (A node
 * without leases decides by the second question.)
 *
 * The second, `survey`, finds out what there is to do. Each kind of work then
 * runs by itself, so that one that fails or takes long delays no other:
 *
 *   - Leases that expired, of any node, are ended: their tasks go back.
 *   - Tasks that missed their start deadline fail (`expirer.ts`).
 *   - Deployments hear which endpoints have tasks to claim. This backs up all
 *     hints: a lost one costs at most one pass.
 *   - With other nodes on the database, waiting callers read their tasks again,
 *     and requested aborts are fetched.
 *
 * Each finding goes to the deployment it belongs to, which knows its waiting
 * callers. If that deployment does not run here, the other nodes are notified.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../log/log.ts";
import type { Notifier } from "../../storage/notifier.ts";
import type { Storage, Survey } from "../../storage/storage.ts";
import type { Task } from "../../tasks/task.ts";
import { SingleFlight } from "../../time/single-flight.ts";
import { Timer } from "../../time/timer.ts";
import { Expirer } from "./expirer.ts";
import { LEASE_HEARTBEAT_INTERVAL_MS, Leases } from "./leases.ts";

/** Pause after maintenance that failed: the node is not ready before it succeeds. */
const LEASE_HEARTBEAT_RETRY_PAUSE_MS = 1_000;

/** The same while hints of other nodes may not arrive: callers that wait know by it alone. */
const UNHINTED_MAINTENANCE_INTERVAL_MS = 1_000;

/** How far ahead a survey sees times of schedules: two rounds may fail, and none is late. */
const SCHEDULES_AHEAD_MS = 3 * LEASE_HEARTBEAT_INTERVAL_MS;

/**
 * Waited-for tasks read at once: with the pause, 5,000 a second, so that one interval of
 * maintenance is enough for 25,000.
 */
const MAX_REMOTE_CHANGES_PER_READ = 100;
/** Pause between two reads of awaited tasks. */
const REMOTE_CHANGES_PAUSE_MS = 20;

/** A deployment's queue as maintenance sees it. */
export interface MaintainedQueue {
  /** A task went back to the queue, or failed, because its worker is gone. */
  onRescued(task: Task): void;
  /** A task missed its start deadline and has failed. */
  onExpired(task: Task): void;
  /** A task of this endpoint can be claimed. */
  onDue(endpoint: string): void;
  /** Tells how many suspects of this endpoint can be claimed. */
  onSuspects(endpoint: string, count: number): void;
  /** A schedule of the deployment has this time, soon or before. */
  onSchedule(atMs: number): void;
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

interface MaintenanceOptions {
  readonly storage: Storage;
  /** Carries hints between nodes; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  readonly log: Log;
  readonly now: () => number;
}

export class Maintenance implements AsyncDisposable {
  readonly leases: Leases;
  /** Fails tasks that miss their start deadline. */
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
   * Returns the attempts of dead nodes to the queue (all attempts where no other
   * node can share the storage), then begins the periodic passes.
   */
  async start(): Promise<void> {
    const { storage, now } = this.#options;
    const all = !storage.capabilities.shared;
    this.#rescued(await storage.rescueExpired({ nowMs: now(), all }));
    void this.expirer.look();
    this.#timer = new Timer(
      () => this.#intervalMs(),
      async () => {
        await this.#renewal.run();
        const surveyed = this.#survey.run();
        if (this.leases.held.length === 0) {
          await surveyed;
        }
      },
      () => {}, // `#renew` and `#lookAround` have logged it already.
    );
  }

  /** Sends a deployment's findings to `queue` until the returned function is called. */
  register(deploymentId: string, queue: MaintainedQueue): () => void {
    this.#queues.set(deploymentId, queue);
    return () => {
      if (this.#queues.get(deploymentId) === queue) {
        this.#queues.delete(deploymentId);
      }
    };
  }

  /** Tells the other nodes of a task for which nobody waits here. */
  tellOthers({ deploymentId, endpoint, taskId, status, key }: Task): void {
    const { notifier } = this.#options;
    notifier?.publish({ kind: "changed", taskId });
    if (status === "queued") {
      const keys = key === undefined ? undefined : [key];
      notifier?.publish({ kind: "queued", deploymentId, endpoint, keys });
    }
  }

  /**
   * One extra pass that begins after this call. Resolves when the work that it
   * found has been started, not finished. Never rejects.
   */
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

  #intervalMs(): number {
    if (this.#failed) {
      return LEASE_HEARTBEAT_RETRY_PAUSE_MS;
    }
    return this.#options.notifier?.isUp === false
      ? UNHINTED_MAINTENANCE_INTERVAL_MS
      : LEASE_HEARTBEAT_INTERVAL_MS;
  }

  async #renew(): Promise<void> {
    const { storage, log, now } = this.#options;
    if (this.leases.held.length === 0) {
      return;
    }
    try {
      // One statement, and one more for each silence limit that joined workers have asked for.
      for (const [ttlMs, leaseIds] of this.leases.byDuration()) {
        const renewed = await storage.renewLeases({ leaseIds, nowMs: now(), ttlMs });
        this.leases.renewed(leaseIds, renewed);
      }
      this.#reportStorage(true);
    } catch (err) {
      this.#reportStorage(false);
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
      const nowMs = now();
      const deploymentIds = [...this.#queues.keys()];
      this.#found(
        await storage.survey({ nowMs, deploymentIds, untilMs: nowMs + SCHEDULES_AHEAD_MS }),
      );
      if (decides) {
        this.#reportStorage(true);
      }
    } catch (err) {
      if (decides) {
        this.#reportStorage(false);
      }
      log.error({ err }, "tasks that wait could not be looked for");
    }
  }

  #found({ expiredLeases, overdueTasks, due, suspects, schedules }: Survey): void {
    for (const { deploymentId, nextAtMs } of schedules) {
      this.#queues.get(deploymentId)?.onSchedule(nextAtMs);
    }
    for (const { deploymentId, endpoint } of due) {
      this.#queues.get(deploymentId)?.onDue(endpoint);
    }
    for (const { deploymentId, endpoint, count } of suspects) {
      this.#queues.get(deploymentId)?.onSuspects(endpoint, count);
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

  #reportStorage(answers: boolean): void {
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
        this.tellOthers(task);
      }
    }
  }

  #expired(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const queue = this.#queues.get(task.deploymentId);
      if (queue) {
        queue.onExpired(task);
      } else {
        this.tellOthers(task);
      }
    }
  }
}

interface RemoteChangesOptions {
  readonly storage: Pick<Storage, "listAborts">;
  readonly log: Log;
  readonly queues: ReadonlyMap<string, MaintainedQueue>;
}

/**
 * Polls for what other nodes did to this node's tasks when their hints got lost, namely requested
 * aborts and changes to awaited tasks. Every waiting caller reads its task again, so they are woken
 * a few at a time, which leaves the storage room for other queries in between.
 */
class RemoteChanges implements AsyncDisposable {
  readonly #options: RemoteChangesOptions;
  readonly #aborts = new SingleFlight(() => this.#abort());
  readonly #waits = new SingleFlight(() => this.#tell());
  readonly #ended = new AbortController();

  constructor(options: RemoteChangesOptions) {
    this.#options = options;
  }

  /** Resolves when all aborts and all waiting callers were handled. Never rejects. */
  async look(): Promise<void> {
    await this.#aborts.run();
    await this.#waits.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#aborts[Symbol.asyncDispose]();
    await this.#waits[Symbol.asyncDispose]();
  }

  async #abort(): Promise<void> {
    const { storage, log, queues } = this.#options;
    const leaseIds = [...queues.values()].flatMap((each) => each.leaseIds());
    if (leaseIds.length === 0) {
      return;
    }
    try {
      for (const { deploymentId, taskId } of await storage.listAborts({ leaseIds })) {
        queues.get(deploymentId)?.abort(taskId);
      }
    } catch (err) {
      log.error({ err }, "aborts that other nodes asked for could not be looked for");
    }
  }

  async #tell(): Promise<void> {
    const { signal } = this.#ended;
    let woken = 0;
    for (const queue of [...this.#options.queues.values()]) {
      for (const taskId of queue.awaited()) {
        if (woken === MAX_REMOTE_CHANGES_PER_READ) {
          woken = 0;
          await sleep(REMOTE_CHANGES_PAUSE_MS, undefined, { signal }).catch(() => {
            // The node ends.
          });
        }
        if (signal.aborted) {
          return;
        }
        queue.onMissed(taskId);
        woken += 1;
      }
    }
  }
}

// The pruner: a periodic job that deletes expired tasks and the tasks of deleted deployments.

/** Tasks deleted at once: bounds how long the database is busy with it. */
const MAX_PRUNED_TASKS = 1_000;
/** Interval at which finished tasks are deleted whose retention has ended. */
const TASK_PRUNE_INTERVAL_MS = 20_000;
/** Interval at which tasks of deleted deployments are deleted, which nobody can see any more. */
const DELETED_TASK_PRUNE_INTERVAL_MS = 60_000;

/** Starts the pruner. It runs by timer, so on an idle server too; dispose of it to stop. */
export function startPruner(options: {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}): AsyncDisposable {
  const { storage, log, now } = options;
  const finished = async (): Promise<void> => {
    while (
      (await storage.pruneFinished({ nowMs: now(), limit: MAX_PRUNED_TASKS })) === MAX_PRUNED_TASKS
    ) {}
  };
  const deleted = async (): Promise<void> => {
    while ((await storage.pruneDeleted({ nowMs: now(), limit: MAX_PRUNED_TASKS })) > 0) {}
  };
  const failed = (err: unknown): void =>
    log.error({ err }, "expired tasks, or those of deleted deployments, could not be deleted");
  const timers = [
    new Timer(TASK_PRUNE_INTERVAL_MS, finished, failed),
    new Timer(DELETED_TASK_PRUNE_INTERVAL_MS, deleted, failed),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(timers.map((timer) => timer[Symbol.asyncDispose]()));
    },
  };
}
