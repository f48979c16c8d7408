/**
 * The backlog: the endpoints of the serving revision that may have tasks waiting, and the free slots
 * that these are claimed for.
 *
 * It errs on the safe side: an endpoint leaves it only when a claim returned fewer tasks than it
 * asked for, and nothing was hinted at meanwhile. So a submit never overtakes a waiting task.
 */
import type { Log } from "../../log/log.ts";
import type { DeploymentMetrics } from "../../metrics/metrics.ts";
import type { Pool, Slot } from "../../pool/pool.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { type ClaimByKey, LOOK_ON_MS } from "../../storage/claims-by-key.ts";
import type { Claimed, ClaimedTask, NewTask, Storage } from "../../storage/storage.ts";
import { Alarm } from "../../time/alarm.ts";
import { shareSlots, TaskBatchWait } from "../batches/tasks.ts";
import { type LookAt, RestingKeys } from "./resting.ts";

/** Tasks of one endpoint claimed at once. */
const MAX_CLAIMED_TASKS = 200;

type Claims = Parameters<Storage["claimTasks"]>[0]["claims"];

/** Slots that one claim is for. */
interface ReservedSlots {
  /** By endpoint. Those that were used are taken off. */
  readonly slots: ReadonlyMap<string, Slot[]>;
  readonly claims: Claims;
  /** What is looked at, of endpoints with keys that rest. */
  readonly looks: ReadonlyMap<string, LookAt>;
  /** Tasks may be waiting that have no free slot. */
  readonly isShort: boolean;
}

/** A claimed task with the slot that it runs in; without one it goes back. */
interface AssignedTask {
  readonly claimed: ClaimedTask;
  readonly slot: Slot | undefined;
}

interface BacklogOptions extends DueTasksOptions {
  readonly pool: Pick<Pool, "reserveAll">;
  /** Default: nothing is counted. */
  readonly metrics?: Pick<DeploymentMetrics, "batchFormed"> | undefined;
  /** Tasks of this endpoint are not started; the storage holds to it as well. Default: none is. */
  readonly isPaused?: (endpoint: string) => boolean;
  /** See `QueueOptions`. */
  readonly onUnknown?: (() => void) | undefined;
}

export class Backlog implements Disposable {
  readonly #options: BacklogOptions;
  readonly #onDue: () => void;
  readonly #due: DueTasks;
  readonly #waiting = new Set<string>();
  /** Endpoints hinted at since the last slots were reserved. */
  readonly #hinted = new Set<string>();
  /** Of the endpoints whose tasks run in batches. */
  readonly #waits = new Map<string, TaskBatchWait>();
  /** Of the endpoints of which tasks wait for the rates of their keys. */
  readonly #nextStarts = new Map<string, Alarm>();
  /** Of the endpoints with more keys than a claim looks at. */
  readonly #resting = new Map<string, RestingKeys>();
  /** When the next part of these is looked at. */
  readonly #nextParts = new Map<string, Alarm>();
  /**
   * Endpoints that go by keys and may have tasks waiting that were stored before they did. The next
   * claim gives these a key, and no other: it looks at many tasks for that.
   */
  readonly #unkeyed = new Set<string>();
  #endpoints: ReadonlyMap<string, EndpointManifest> | undefined;

  /** `onDue` is called when tasks may be claimed that waited for their time, or for others. */
  constructor(options: BacklogOptions, onDue: () => void) {
    this.#options = options;
    this.#onDue = onDue;
    this.#due = new DueTasks(options, () => {
      this.#hurryAll();
      onDue();
    });
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** True for an endpoint that may have tasks waiting, or is paused: what comes waits as well. */
  has(endpoint: string): boolean {
    return this.#waiting.has(endpoint) || this.#isPaused(endpoint);
  }

  /** Whether tasks of the endpoint wait for others of their batch. */
  gathers(endpoint: string): boolean {
    return this.#waits.get(endpoint)?.due === false;
  }

  /** A task endpoint of the serving revision. */
  find(endpoint: string): EndpointManifest | undefined {
    return this.#endpoints?.get(endpoint);
  }

  /** These task endpoints serve from now on. Any of them may have tasks waiting. */
  serve(tasks: readonly EndpointManifest[]): void {
    if (this.#endpoints === undefined) {
      void this.#due.find();
    }
    this.#endpoints = new Map(tasks.map((endpoint) => [endpoint.name, endpoint]));
    this.#endWaits();
    this.#waiting.clear();
    this.#unkeyed.clear();
    for (const { name, batch } of tasks) {
      this.unkeyed(name);
      if (batch) {
        this.#waits.set(name, new TaskBatchWait(batch, this.#onDue));
      }
      // What a claim finds that is under way is of the revision before.
      this.hint(name);
    }
  }

  /**
   * These tasks were stored as queued. Returns the endpoints of those that are due, and their keys where
   * they go by keys.
   */
  add(tasks: readonly NewTask[]): [endpoint: string, keys: readonly string[] | undefined][] {
    const due = tasks.filter(({ runAtMs, createdAtMs }) => runAtMs <= createdAtMs);
    for (const { runAtMs, createdAtMs } of tasks) {
      if (runAtMs > createdAtMs) {
        this.#due.expect(runAtMs);
      }
    }
    return [...Map.groupBy(due, ({ endpoint }) => endpoint)].map(([endpoint, own]) => {
      const isByKey = this.find(endpoint)?.byKey !== undefined;
      const keys = isByKey ? [...new Set(own.map(({ key = "" }) => key))] : undefined;
      this.came(endpoint, keys, own.length);
      return [endpoint, keys];
    });
  }

  /** A task will be due at this time (milliseconds since 1970). */
  expect(runAtMs: number): void {
    this.#due.expect(runAtMs);
  }

  /** Tasks of the endpoint have come: this number, or more. Their keys as in `hint`. */
  came(endpoint: string, keys?: readonly string[], count = 1): void {
    this.#waits.get(endpoint)?.came(count);
    this.hint(endpoint, keys);
    if (this.find(endpoint) === undefined) {
      this.#options.onUnknown?.();
    }
  }

  /**
   * Tasks of the endpoint may be waiting, of these keys where it goes by keys; undefined: of any. Ignores
   * an endpoint that this revision lacks.
   */
  hint(endpoint: string, keys?: readonly string[]): void {
    if (this.find(endpoint) && !this.#isPaused(endpoint)) {
      this.#waiting.add(endpoint);
      this.#hinted.add(endpoint);
      this.#resting.get(endpoint)?.tell(keys);
    }
  }

  /** Maintenance has found that tasks of the endpoint wait. */
  found(endpoint: string): void {
    this.unkeyed(endpoint);
    const resting = this.#resting.get(endpoint);
    resting?.lookOn();
    // Tasks that were stored without a key are given the empty one now.
    resting?.tell([""]);
  }

  /** A claim for others than the backlog has found delayed tasks due. */
  promoted(due: NonNullable<Claimed["due"]>): void {
    for (const { endpoint, keys } of due) {
      this.hint(endpoint, keys);
    }
    if (due.length > 0) {
      this.#onDue();
    }
  }

  /** Hints were lost: tasks of any key may be waiting. */
  lost(): void {
    for (const endpoint of this.#resting.keys()) {
      this.hint(endpoint);
    }
  }

  /** Tasks of the endpoint may be waiting without a key. Ignores one that does not go by keys. */
  unkeyed(endpoint: string): void {
    if (this.find(endpoint)?.byKey !== undefined) {
      this.#unkeyed.add(endpoint);
    }
  }

  /** A task goes back to the queue; returns its key, for hints, where the endpoint goes by keys. */
  returned(endpoint: string, key: string | undefined): readonly string[] | undefined {
    if (key === undefined) {
      this.unkeyed(endpoint);
    }
    return this.find(endpoint)?.byKey && [key ?? ""];
  }

  /** How tasks of the endpoint are claimed; undefined: in the order of the queue. */
  byKey(endpoint: string, look: LookAt = "part"): ClaimByKey | undefined {
    const byKey = this.find(endpoint)?.byKey;
    const unkeyed = this.#unkeyed.has(endpoint);
    return byKey && { ...byKey, unkeyed, ...(look !== "part" && { keys: look }) };
  }

  /** Takes the free slots of the endpoints that may have tasks waiting. */
  reserve(): ReservedSlots {
    const slots = new Map<string, Slot[]>();
    let gathering = 0;
    for (const name of this.#waiting) {
      const wait = this.#waits.get(name);
      if (this.#isPaused(name)) {
        // Every endpoint is served anew when one is resumed.
        this.#waiting.delete(name);
        continue;
      }
      if (wait?.due === false) {
        gathering += 1;
        continue;
      }
      const endpoint = this.find(name);
      const most = Math.ceil(MAX_CLAIMED_TASKS / (wait?.batch.maxSize ?? 1));
      const free = endpoint ? this.#options.pool.reserveAll(endpoint, most) : [];
      if (free.length > 0) {
        slots.set(name, free);
      }
    }
    const isShort = slots.size < this.#waiting.size - gathering;
    const looks = new Map<string, LookAt>();
    for (const name of slots.keys()) {
      const resting = this.#resting.get(name);
      if (resting) {
        looks.set(name, resting.next());
      }
    }
    const claims = [...slots].flatMap(([name, free]) =>
      this.#claimsOf(name, free, looks.get(name)),
    );
    if (claims.length > 0) {
      this.#hinted.clear();
    }
    return { slots, claims, looks, isShort };
  }

  /** Gives claimed tasks the slots that they were claimed for. */
  assign(claimed: readonly ClaimedTask[], { slots }: ReservedSlots): AssignedTask[] {
    const assigned: AssignedTask[] = [];
    const batched = new Map<string, ClaimedTask[]>();
    for (const one of claimed) {
      const { endpoint } = one.task;
      const free = slots.get(endpoint) ?? [];
      if (this.#waits.has(endpoint)) {
        const key = `${endpoint} ${one.leaseId}`;
        batched.set(key, [...(batched.get(key) ?? []), one]);
      } else {
        const index = free.findIndex(({ workerId }) => workerId === one.leaseId);
        assigned.push({ claimed: one, slot: index < 0 ? undefined : free.splice(index, 1)[0] });
      }
    }
    for (const tasks of batched.values()) {
      assigned.push(...this.#assignBatches(tasks, slots));
    }
    return assigned;
  }

  /**
   * A claim for these slots was answered with these tasks. True when more may be waiting; an
   * endpoint that gave less than was asked for leaves.
   */
  answered(reserved: ReservedSlots, claimed: Claimed): boolean {
    const { slots, claims } = reserved;
    let more = false;
    for (const endpoint of slots.keys()) {
      const asked = claims.filter((claim) => claim.endpoint === endpoint);
      const found = claimed.tasks.filter(({ task }) => task.endpoint === endpoint);
      const isFull = found.length === asked.reduce((sum, { limit }) => sum + limit, 0);
      const started = found.map(({ task }) => task.key ?? "");
      const isLookDue = this.#looked(endpoint, reserved, { claimed, isFull, started });
      if (isFull || isLookDue) {
        more = true;
      } else if (!this.#hinted.has(endpoint)) {
        this.#waiting.delete(endpoint);
        this.#waits.get(endpoint)?.emptied();
      }
    }
    for (const { endpoint, inMs } of claimed.later) {
      if (inMs !== undefined) {
        this.#nextStart(endpoint).set(this.#options.now() + inMs);
      }
    }
    return more;
  }

  /** What a claim has found of keys that rest. True when further ones are to be looked at now. */
  #looked(
    endpoint: string,
    { looks }: ReservedSlots,
    {
      claimed: { later, due = [] },
      isFull,
      started,
    }: {
      readonly claimed: Claimed;
      readonly isFull: boolean;
      readonly started: readonly string[];
    },
  ): boolean {
    const cut = later.find((one) => one.endpoint === endpoint)?.cut;
    const resting = this.#resting.get(endpoint);
    const look = looks.get(endpoint);
    if (resting === undefined || look === undefined) {
      if (cut !== undefined && resting === undefined && this.find(endpoint)?.byKey) {
        this.#resting.set(endpoint, new RestingKeys());
        this.#nextPart(endpoint).set(this.#options.now() + LOOK_ON_MS);
      }
      return false;
    }
    const keys = due.flatMap((one) => (one.endpoint === endpoint ? one.keys : []));
    const nextMs = resting.answered({ look, isFull, cut, started, due: keys });
    if (nextMs === "none") {
      this.#resting.delete(endpoint);
      return false;
    }
    if (nextMs !== undefined) {
      this.#nextPart(endpoint).set(this.#options.now() + nextMs);
    }
    return resting.isLookDue;
  }

  /** A claim was not answered: what it was to do is for the next one. */
  failed({ claims, looks }: ReservedSlots): void {
    for (const [endpoint, look] of looks) {
      this.#resting.get(endpoint)?.failed(look);
    }
    for (const { endpoint, byKey } of claims) {
      if (byKey?.unkeyed) {
        this.unkeyed(endpoint);
      }
    }
  }

  /** Nothing becomes due any more. */
  [Symbol.dispose](): void {
    this.#due[Symbol.dispose]();
    this.#endWaits();
  }

  #isPaused(endpoint: string): boolean {
    return this.#options.isPaused?.(endpoint) === true;
  }

  #hurryAll(): void {
    for (const endpoint of this.#endpoints?.keys() ?? []) {
      this.#hurry(endpoint);
    }
  }

  /** Tasks of the endpoint may be waiting that the next claim finds due, and wait for no others. */
  #hurry(endpoint: string): void {
    this.#waits.get(endpoint)?.hurry();
    this.hint(endpoint, []);
  }

  #endWaits(): void {
    const alarms = [...this.#nextStarts.values(), ...this.#nextParts.values()];
    for (const wait of [...this.#waits.values(), ...alarms]) {
      wait[Symbol.dispose]();
    }
    this.#waits.clear();
    this.#nextStarts.clear();
    this.#nextParts.clear();
    this.#resting.clear();
  }

  /** What looks again for tasks of an endpoint when the rate of a key lets the next one start. */
  #nextStart(endpoint: string): Alarm {
    return this.#alarm(this.#nextStarts, endpoint, () => {});
  }

  /** What looks at the next part of the keys of an endpoint. */
  #nextPart(endpoint: string): Alarm {
    return this.#alarm(this.#nextParts, endpoint, () => this.#resting.get(endpoint)?.lookOn());
  }

  #alarm(alarms: Map<string, Alarm>, endpoint: string, onRing: () => void): Alarm {
    const ring = (): void => {
      onRing();
      this.#hurry(endpoint);
      this.#onDue();
    };
    const alarm = alarms.get(endpoint) ?? new Alarm(ring, this.#options.now);
    alarms.set(endpoint, alarm);
    return alarm;
  }

  /** How many tasks of an endpoint may be claimed for each worker of these slots. */
  #claimsOf(endpoint: string, slots: readonly Slot[], look: LookAt | undefined): Claims {
    const byKey = this.byKey(endpoint, look);
    this.#unkeyed.delete(endpoint);
    const counts = new Map<string, { limit: number } & Omit<Claims[number], "limit">>();
    for (const { workerId } of slots) {
      const one = { endpoint, leaseId: workerId, limit: 0, ...(byKey && { byKey }) };
      const count = counts.get(workerId) ?? one;
      count.limit += this.#waits.get(endpoint)?.batch.maxSize ?? 1;
      counts.set(workerId, count);
    }
    return [...counts.values()];
  }

  /** Gives tasks of one endpoint that were claimed for one worker their shares of its slots. */
  #assignBatches(
    tasks: readonly ClaimedTask[],
    slots: ReservedSlots["slots"],
  ): readonly AssignedTask[] {
    const { now, metrics } = this.#options;
    const [{ task, leaseId }] = tasks as [ClaimedTask];
    const wait = this.#waits.get(task.endpoint) as TaskBatchWait;
    const free = slots.get(task.endpoint) ?? [];
    const own = free.filter(({ workerId }) => workerId === leaseId);
    for (const slot of own) {
      free.splice(free.indexOf(slot), 1);
    }
    const { shared, left } = shareSlots(tasks, own, wait.batch);
    free.push(...own);
    for (const batch of shared) {
      wait.formed(batch.length);
      const oldestMs = Math.min(...batch.map(({ claimed }) => claimed.task.runAtMs));
      metrics?.batchFormed(task.endpoint, batch.length, Math.max(0, now() - oldestMs) / 1_000);
    }
    // The key of those that are left is another one: they run when a slot is free.
    return [...shared.flat(), ...left.map((claimed) => ({ claimed, slot: undefined }))];
  }
}

/** The alarm for delayed tasks: wakes the queue of one deployment when they become due. */
interface DueTasksOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Rings when delayed tasks become due: those that this node stored, and those
 * that it finds in the storage, such as tasks from before its start. A ring is
 * a hint; the node's maintenance finds the tasks that it misses.
 */
class DueTasks implements Disposable {
  readonly #options: DueTasksOptions;
  readonly #alarm: Alarm;
  /** When the next task found in the storage becomes due. */
  #foundMs: number | undefined;

  constructor(options: DueTasksOptions, ring: () => void) {
    this.#options = options;
    this.#alarm = new Alarm(() => {
      ring();
      if (this.#foundMs !== undefined && this.#foundMs <= options.now()) {
        void this.find();
      }
    }, options.now);
  }

  /** A task is due at this time (milliseconds since 1970). */
  expect(runAtMs: number): void {
    this.#alarm.set(runAtMs);
  }

  /** Looks up the next due time in the storage, and again each time it is reached. */
  async find(): Promise<void> {
    const { deploymentId, storage, log, now } = this.#options;
    this.#foundMs = undefined;
    try {
      this.#foundMs = await storage.nextRunAt({ deploymentId, nowMs: now() });
    } catch (err) {
      log.warn({ err }, "the time of the next delayed task could not be looked up");
    }
    if (this.#foundMs !== undefined) {
      this.expect(this.#foundMs);
    }
  }

  [Symbol.dispose](): void {
    this.#foundMs = undefined;
    this.#alarm[Symbol.dispose]();
  }
}
