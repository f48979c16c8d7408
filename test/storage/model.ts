/**
 * The reference model of the storage port: what `src/storage/storage.ts`
 * promises, in the plainest words, over a map in memory. It has the port's
 * method names and parameters, synchronously. Where the port leaves the order
 * of equals open, the model takes them by task id.
 *
 * It differs from an adapter in one way on purpose: it writes the whole event
 * log down, state changes included, where adapters store the least that the
 * log can be derived from.
 */
import type { ClaimByKey } from "../../src/storage/claims-by-key.ts";
import type { QueueCount } from "../../src/storage/queues.ts";
import type {
  Attempt,
  AttemptEnd,
  CancelOutcome,
  Claimed,
  ClaimedTask,
  DeleteOutcome,
  NewTask,
  Storage,
  SubmitOutcome,
  Survey,
  TaskKey,
} from "../../src/storage/storage.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS, restartAfterLostNode } from "../../src/tasks/lost.ts";
import { isFinal, type Task, type TaskFailure } from "../../src/tasks/task.ts";
import { KeyStarts } from "./model-starts.ts";
import {
  append,
  canStart,
  create,
  finish,
  inOrder,
  isClaimable,
  type ModelTask,
  nameOf,
  queueOf,
  removeLines,
  requeue,
} from "./model-task.ts";
import { type Contender, KeyTimes } from "./model-times.ts";

type ParametersOf<Name extends keyof Storage> = Storage[Name] extends (
  parameters: infer P,
) => unknown
  ? P
  : never;

const EXPIRED: TaskFailure = {
  reason: "expired",
  code: "deadline_exceeded",
  message: "the task was not started before its deadline",
};

export class QueueModel {
  /** A deployment with a webhook that is told of nothing: what it waits for is kept. */
  told = "";
  readonly tasks = new Map<string, ModelTask>();
  /** Endpoints whose tasks nobody claims, as `deployment/endpoint`. */
  readonly paused = new Set<string>();
  /** When each open lease expires. */
  readonly leases = new Map<string, number>();
  /** The keys that were claimed last, of endpoints that go by keys. */
  readonly #turns = new Map<string, string>();
  /** When tasks of each key have started, of endpoints that bound the rate of that. */
  readonly #starts = new KeyStarts();
  /** What keys have had, of endpoints that go by seconds. */
  readonly #times = new KeyTimes();
  /** Until when deleted tasks are remembered. */
  readonly #deleted = new Map<string, number>();
  /** The tasks that were last stored with each idempotency key. */
  readonly #holders = new Map<string, ModelTask>();

  find({ deploymentId, taskId }: TaskKey): ModelTask | undefined {
    return this.tasks.get(`${deploymentId}/${taskId}`);
  }

  submitTasks({ tasks }: ParametersOf<"submitTasks">): SubmitOutcome[] {
    return tasks.map((task) => this.#submit(task));
  }

  claimTasks({
    deploymentId,
    nowMs,
    claims,
    suspects = false,
  }: ParametersOf<"claimTasks">): Claimed {
    for (const found of this.#list("queued", deploymentId)) {
      const isClaimed = claims.some(({ endpoint }) => endpoint === found.task.endpoint);
      found.due ||= isClaimed && isClaimable(found, nowMs);
    }
    for (const { endpoint, byKey } of claims) {
      for (const found of byKey ? this.#list("queued", deploymentId) : []) {
        found.key ??= found.due && found.task.endpoint === endpoint ? "" : undefined;
      }
    }
    for (const { endpoint, byKey } of claims) {
      if (byKey?.rate) {
        this.#starts.claimed(`${deploymentId}/${endpoint}`);
      }
    }
    const later = new Map<string, number>();
    const timed = claims.filter(({ byKey }) => byKey?.fair === "seconds" && !suspects);
    for (const one of new Set(timed.map(({ endpoint }) => endpoint))) {
      this.#times.settle(`${deploymentId}/${one}`);
    }
    const contended = new Map<string, readonly Contender[]>();
    const tasks = claims.flatMap(({ endpoint, leaseId, limit, byKey }) => {
      const name = `${deploymentId}/${endpoint}`;
      const isTimed = byKey?.fair === "seconds" && !suspects;
      const isOpen = this.leases.has(leaseId) && !this.paused.has(name);
      const waiting = this.#list("queued", deploymentId)
        .filter(({ due, task }) => due && task.endpoint === endpoint && isOpen)
        .filter((found) => canStart(found, nowMs) && found.suspect === suspects)
        .sort(inOrder);
      if (isTimed && isOpen && limit > 0 && !contended.has(name)) {
        const free = waiting.filter(
          (one) => this.#hasRoom(one, byKey) && this.#nextStartMs(one, byKey) <= nowMs,
        );
        contended.set(name, this.#contenders(free, name, nowMs));
      }
      const started: ClaimedTask[] = [];
      while (started.length < limit) {
        const free = waiting.filter(
          (one) =>
            one.task.status === "queued" &&
            this.#hasRoom(one, byKey) &&
            this.#nextStartMs(one, byKey) <= nowMs,
        );
        const next = isTimed
          ? this.#leastServed(free, name, contended.get(name) ?? [])
          : byKey && !suspects
            ? this.#inTurn(free, endpoint)
            : free[0];
        if (next === undefined) {
          break;
        }
        if (byKey?.fair === "seconds" && suspects) {
          this.#times.begin(name, next.key ?? "");
        }
        this.#start(next, leaseId, nowMs);
        if (byKey?.rate) {
          this.#starts.started(nameOf(next), nowMs);
        }
        started.push({ task: next.task, leaseId, arguments: next.submitted.arguments });
      }
      const times = waiting
        .filter((one) => one.task.status === "queued" && this.#hasRoom(one, byKey))
        .map((one) => this.#nextStartMs(one, byKey));
      if (byKey?.rate && !suspects && started.length < limit && times.length > 0) {
        later.set(endpoint, Math.min(...times) - nowMs);
      }
      return started;
    });
    for (const [name, contenders] of contended) {
      this.#times.close(name, contenders);
    }
    return { tasks, later: Array.from(later, ([endpoint, inMs]) => ({ endpoint, inMs })) };
  }

  /** The keys of these tasks, in the order of their turns. */
  #contenders(free: readonly ModelTask[], name: string, nowMs: number): Contender[] {
    const last = this.#turns.get(name) ?? "";
    const keys = [...new Set(free.map(({ key = "" }) => key))].sort();
    const inTurn = [...keys.filter((key) => key > last), ...keys.filter((key) => key <= last)];
    return inTurn.map((key) => {
      const running = this.#list("running").filter(
        (one) => one.key === key && `${one.task.deploymentId}/${one.task.endpoint}` === name,
      );
      const times = running.map(({ task }) => Math.max(0, nowMs - (task.startedAtMs ?? 0)));
      return { key, running: times, started: 0 };
    });
  }

  /** The first task of the key that has had the least. */
  #leastServed(free: readonly ModelTask[], name: string, contenders: readonly Contender[]) {
    const left = contenders.filter(({ key }) => free.some((one) => one.key === key));
    const next = this.#times.next(name, left);
    if (next !== undefined) {
      next.started += 1;
      this.#turns.set(name, next.key);
    }
    return free.find(({ key }) => key === next?.key && next !== undefined);
  }

  #hasRoom(found: ModelTask, byKey: ClaimByKey | undefined): boolean {
    const { deploymentId, endpoint } = found.task;
    const running = this.#list("running", deploymentId).filter(
      ({ task, key }) => task.endpoint === endpoint && key === found.key,
    );
    return running.length < (byKey?.concurrency ?? Number.POSITIVE_INFINITY);
  }

  /** When the rate of its key lets a task start. */
  #nextStartMs(found: ModelTask, byKey: ClaimByKey | undefined): number {
    return byKey?.rate ? this.#starts.nextMs(nameOf(found)) : 0;
  }

  /** The first task of the key after the one that was claimed last. */
  #inTurn(free: readonly ModelTask[], endpoint: string): ModelTask | undefined {
    const deploymentId = free[0]?.task.deploymentId;
    const last = this.#turns.get(`${deploymentId}/${endpoint}`) ?? "";
    const keys = free.map(({ key = "" }) => key).sort();
    const key = keys.find((one) => one > last) ?? keys[0];
    const next = free.find((one) => one.key === key);
    if (key !== undefined) {
      this.#turns.set(`${deploymentId}/${endpoint}`, key);
    }
    return next;
  }

  endAttempts({ nowMs, ends }: ParametersOf<"endAttempts">): (Task | undefined)[] {
    return ends.map(({ attempt, end, events = [] }) => {
      this.recordEvents({ events: events.map((event) => ({ attempt, ...event })) });
      const found = this.#current(attempt);
      if (found) {
        this.#ran(found, nowMs);
        const { deploymentId, endpoint, startedAtMs = nowMs } = found.task;
        if ("unbegun" in end && end.unbegun) {
          const [name, atMs] = [nameOf(found), startedAtMs];
          this.#starts.ended({ endpoint: `${deploymentId}/${endpoint}`, name, atMs });
        }
      }
      return found ? this.#end(found, end, nowMs) : this.#repeated(attempt, end, nowMs);
    });
  }

  recordEvents({ events }: ParametersOf<"recordEvents">): (number | undefined)[] {
    return events.map(({ attempt, timeMs, body, displaces }) => {
      const found = this.#current(attempt);
      if (found && body.kind === "progress") {
        const { fraction, message } = body;
        found.task = { ...found.task, progress: { fraction, message } };
      }
      const sequence = found && append(found, timeMs, body);
      if (found && displaces) {
        removeLines(found, displaces);
      }
      return sequence;
    });
  }

  cancelTask({ nowMs, ...key }: ParametersOf<"cancelTask">): CancelOutcome | undefined {
    const found = this.find(key);
    if (found?.task.status !== "queued") {
      return found && { outcome: "not_queued", task: found.task };
    }
    return { outcome: "cancelled", task: finish(found, { status: "cancelled" }, nowMs) };
  }

  updateTask({ change, nowMs, ...key }: ParametersOf<"updateTask">) {
    const found = this.find(key);
    if (found?.task.status !== "queued") {
      return found && { outcome: "not_queued", task: found.task };
    }
    const { priority = found.task.priority, runAtMs, startByMs, retentionMs, tags } = change;
    const startBy = startByMs === undefined ? found.submitted.startByMs : (startByMs ?? undefined);
    found.submitted = {
      ...found.submitted,
      startByMs: startBy,
      retentionMs: retentionMs ?? found.submitted.retentionMs,
    };
    found.task = { ...found.task, priority, startByMs: startBy };
    if (tags !== undefined) {
      found.task = { ...found.task, tags: tags.length === 0 ? undefined : tags };
    }
    if (runAtMs !== undefined) {
      found.task = { ...found.task, runAtMs: Math.max(runAtMs, nowMs) };
      found.due = runAtMs <= nowMs;
    }
    if (runAtMs !== undefined || retentionMs !== undefined) {
      const expiresAtMs = found.task.runAtMs + found.submitted.retentionMs;
      found.task = { ...found.task, expiresAtMs };
    }
    return { outcome: "updated", task: found.task };
  }

  deleteTasks({ deploymentId, taskIds, nowMs }: ParametersOf<"deleteTasks">): DeleteOutcome[] {
    return taskIds.map((taskId) => {
      const found = this.find({ deploymentId, taskId });
      if (found === undefined || found.task.status === "running") {
        return found ? "running" : "not_found";
      }
      const name = `${deploymentId}/${taskId}`;
      this.tasks.delete(name);
      const { expiresAtMs, status } = found.task;
      const untilMs = status === "queued" ? nowMs + found.submitted.retentionMs : expiresAtMs;
      this.#deleted.set(name, this.#deleted.get(name) ?? untilMs);
      return "deleted";
    });
  }

  requestAbort(key: ParametersOf<"requestAbort">): Task | undefined {
    const found = this.find(key);
    if (found?.task.status === "running") {
      found.abortRequested = true;
    }
    return found?.task;
  }

  listAborts({ leaseIds }: ParametersOf<"listAborts">): Attempt[] {
    return this.#attempts(leaseIds, ({ abortRequested }) => abortRequested);
  }

  listAttempts({ leaseIds }: ParametersOf<"listAttempts">): Attempt[] {
    return this.#attempts(leaseIds, () => true);
  }

  expireTasks({ nowMs, limit }: ParametersOf<"expireTasks">): Task[] {
    const startBy = ({ submitted }: ModelTask) => submitted.startByMs ?? Number.POSITIVE_INFINITY;
    return this.#list("queued")
      .filter((found) => startBy(found) <= nowMs)
      .sort((a, b) => startBy(a) - startBy(b))
      .slice(0, limit)
      .map((found) => finish(found, { status: "failure", failure: EXPIRED }, nowMs));
  }

  openLease({ leaseId, nowMs, ttlMs }: ParametersOf<"openLease">): void {
    this.leases.set(leaseId, nowMs + ttlMs);
  }

  renewLeases({ leaseIds, nowMs, ttlMs }: ParametersOf<"renewLeases">): string[] {
    const renewed = leaseIds.filter((leaseId) => this.leases.has(leaseId));
    for (const leaseId of renewed) {
      this.leases.set(leaseId, nowMs + ttlMs);
    }
    return renewed;
  }

  survey({ nowMs, deploymentIds }: ParametersOf<"survey">): Survey {
    const queued = this.#list("queued");
    const due = queued
      .filter((found) => deploymentIds.includes(found.task.deploymentId))
      .filter((found) => isClaimable(found, nowMs) && !this.paused.has(queueOf(found.task)));
    const suspects = due.filter((found) => found.suspect && found.due);
    return {
      expiredLeases: [...this.leases.values()].some((expiresAtMs) => expiresAtMs <= nowMs),
      overdueTasks: queued.some((found) => !canStart(found, nowMs)),
      schedules: [],
      due: endpointsOf(due),
      suspects: endpointsOf(suspects).map((of) => ({
        ...of,
        count: suspects.filter(
          ({ task }) => task.deploymentId === of.deploymentId && task.endpoint === of.endpoint,
        ).length,
      })),
    };
  }

  closeLease({ leaseId, nowMs }: ParametersOf<"closeLease">): Task[] {
    this.leases.delete(leaseId);
    return this.#list("running")
      .filter((found) => found.leaseId === leaseId)
      .map((found) => {
        this.#ran(found, nowMs);
        return this.#loseNode(found, nowMs);
      });
  }

  rescueExpired({ nowMs, all = false }: ParametersOf<"rescueExpired">): Task[] {
    return [...this.leases]
      .filter(([, expiresAtMs]) => all || expiresAtMs <= nowMs)
      .flatMap(([leaseId]) => this.closeLease({ leaseId, nowMs }));
  }

  pruneFinished({ nowMs, limit }: ParametersOf<"pruneFinished">): number {
    const expired = [...this.tasks]
      .filter(([, { task }]) => isFinal(task.status) && task.expiresAtMs <= nowMs)
      .filter(([, { task }]) => task.deploymentId !== this.told)
      .sort(([, a], [, b]) => a.task.expiresAtMs - b.task.expiresAtMs)
      .slice(0, limit);
    for (const [key] of expired) {
      this.tasks.delete(key);
    }
    for (const name of this.#turns.keys()) {
      const isWaited = this.#list("queued").some(
        ({ task, due, key }) =>
          `${task.deploymentId}/${task.endpoint}` === name && due && key !== undefined,
      );
      if (!isWaited && !this.#times.has(name)) {
        this.#turns.delete(name);
        this.#times.forget(name);
      }
    }
    const forgotten = [...this.#deleted]
      .filter(([, untilMs]) => untilMs <= nowMs)
      .sort(([, a], [, b]) => a - b)
      .slice(0, limit);
    for (const [name] of forgotten) {
      this.#deleted.delete(name);
    }
    return Math.max(expired.length, forgotten.length, this.#starts.prune(nowMs, limit));
  }

  /** Endpoints that have neither are left out. */
  countTasks({ deploymentId }: ParametersOf<"countTasks">): QueueCount[] {
    const unfinished = [
      ...this.#list("queued", deploymentId),
      ...this.#list("running", deploymentId),
    ];
    const counted = Map.groupBy(unfinished, ({ task }) => task.endpoint);
    return [...counted].map(([endpoint, found]) => {
      const queued = found.filter(({ task }) => task.status === "queued").length;
      return { endpoint, queued, running: found.length - queued };
    });
  }

  /** All pages as one. */
  listTasks(listing: ParametersOf<"listTasks">): Task[] {
    const { deploymentId, endpoint, status, createdFromMs, createdBeforeMs, before } = listing;
    const { tags = [] } = listing;
    return [...this.tasks.values()]
      .map(({ task }) => task)
      .filter((task) => task.deploymentId === deploymentId)
      .filter((task) => endpoint === undefined || task.endpoint === endpoint)
      .filter((task) => status === undefined || task.status === status)
      .filter((task) => createdFromMs === undefined || task.createdAtMs >= createdFromMs)
      .filter((task) => createdBeforeMs === undefined || task.createdAtMs < createdBeforeMs)
      .filter((task) => tags.every((tag) => task.tags?.includes(tag)))
      .filter((task) => before === undefined || task.taskId < before)
      .sort((a, b) => (a.taskId < b.taskId ? 1 : -1));
  }

  queuePosition({ nowMs, limit, ...key }: ParametersOf<"queuePosition">): number | undefined {
    const { deploymentId, endpoint } = this.find(key)?.task ?? {};
    const position = this.#list("queued", deploymentId)
      .filter((found) => isClaimable(found, nowMs) && found.task.endpoint === endpoint)
      .sort(inOrder)
      .findIndex(({ task }) => task.taskId === key.taskId);
    return position < 0 ? undefined : Math.min(position, limit);
  }

  nextRunAt({ deploymentId, nowMs }: ParametersOf<"nextRunAt">): number | undefined {
    const times = this.#list("queued", deploymentId)
      .filter(({ due, task }) => !due && task.runAtMs > nowMs)
      .map(({ task }) => task.runAtMs);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  #submit(submitted: NewTask): SubmitOutcome {
    const { deploymentId, endpoint, idempotency, leaseId } = submitted;
    const same = this.find(submitted);
    if (same) {
      return { outcome: "stored", task: same.task };
    }
    const key = idempotency && `${deploymentId}/${endpoint}/${idempotency.key}`;
    const holder = key === undefined ? undefined : this.#holders.get(key);
    // A holder that was pruned has given its key back.
    const earlier = holder && this.find(holder.task);
    if (earlier && this.#holdsKey(earlier, submitted)) {
      return earlier.submitted.idempotency?.digest === idempotency?.digest
        ? { outcome: "replayed", task: earlier.task }
        : { outcome: "key_reused" };
    }
    const isPaused = this.paused.has(queueOf(submitted));
    const claimed = leaseId !== undefined && this.leases.has(leaseId) && !isPaused;
    const waiting = this.#list("queued", deploymentId);
    const queued = waiting.filter(({ task }) => task.endpoint === endpoint).length;
    if (!claimed && queued >= submitted.queueLimit) {
      return { outcome: "queue_full", queued };
    }
    const found = create(submitted);
    this.tasks.set(`${deploymentId}/${submitted.taskId}`, found);
    if (key !== undefined) {
      this.#holders.set(key, found);
    }
    if (claimed) {
      this.#start(found, leaseId, submitted.createdAtMs);
    }
    return { outcome: "stored", task: found.task };
  }

  /** A task holds its key until it expires or, for the same call, ends without success. */
  #holdsKey({ task, submitted }: ModelTask, { idempotency, createdAtMs }: NewTask): boolean {
    const { status, expiresAtMs } = task;
    if (isFinal(status) && expiresAtMs <= createdAtMs) {
      return false;
    }
    const isSame = submitted.idempotency?.digest === idempotency?.digest;
    const endedBadly = status === "failure" || status === "cancelled";
    return !isSame || !endedBadly || idempotency?.replay === "always";
  }

  #start(found: ModelTask, leaseId: string, nowMs: number): void {
    const attempt = found.task.attempt + 1;
    found.leaseId = leaseId;
    found.abortRequested = false;
    found.task = {
      ...found.task,
      status: "running",
      attempt,
      worker: leaseId,
      startedAtMs: nowMs,
      progress: undefined,
    };
    append(found, nowMs, { kind: "state", status: "running" });
  }

  #end(found: ModelTask, end: AttemptEnd, nowMs: number): Task {
    if (end.status === "queued") {
      const failedAttempts = found.task.failedAttempts + (end.failed ? 1 : 0);
      found.task = { ...found.task, failedAttempts };
      found.suspect = end.suspect ?? (found.suspect && !end.failed);
      return requeue(found, { laterMs: end.runAtMs, failure: end.failure, nowMs });
    }
    if (end.status === "node_lost") {
      return this.#loseNode(found, nowMs, end.failure);
    }
    if (end.status !== "worker_lost") {
      return finish(found, end, nowMs);
    }
    // The death that made it a suspect counts with the first that it causes alone.
    found.lostWorkers += found.suspect && found.lostWorkers === 0 ? 2 : 1;
    found.suspect = true;
    if (found.lostWorkers <= MAX_LOST_WORKERS) {
      return requeue(found, { failure: end.failure, nowMs });
    }
    const message = `the worker died during this task ${found.lostWorkers} times; it is not tried again`;
    const failure = { reason: "worker_lost", code: "internal", message } as const;
    return finish(found, { status: "failure", failure }, nowMs);
  }

  #loseNode(found: ModelTask, nowMs: number, why?: TaskFailure): Task {
    found.lostNodes += 1;
    const { lostNodes } = found;
    if (lostNodes > MAX_LOST_NODES) {
      const message = `the node ended during this task ${lostNodes} times; it is not tried again`;
      const failure = { reason: "node_lost", code: "internal", message } as const;
      return finish(found, { status: "failure", failure }, nowMs);
    }
    const { taskId, attempt } = found.task;
    const laterMs = restartAfterLostNode({ taskId, attempt, lostNodes, nowMs });
    const message = "the node that ran it ended, or lost the database";
    const failure = why ?? ({ reason: "node_lost", code: "unavailable", message } as const);
    return requeue(found, { laterMs, failure, nowMs });
  }

  /** The attempt of a task ends. */
  #ran({ key, task }: ModelTask, nowMs: number): void {
    const { deploymentId, endpoint, startedAtMs = nowMs } = task;
    if (key !== undefined) {
      this.#times.ran(`${deploymentId}/${endpoint}`, key, nowMs - startedAtMs);
    }
  }

  /** The task of an attempt that may still write. */
  #current(attempt: Attempt): ModelTask | undefined {
    const found = this.find(attempt);
    const current =
      found?.task.status === "running" &&
      found.leaseId === attempt.leaseId &&
      found.task.attempt === attempt.attempt;
    return current ? found : undefined;
  }

  /** The task, when it ended by this very call before. */
  #repeated({ leaseId, attempt, ...key }: Attempt, end: AttemptEnd, nowMs: number) {
    const found = this.find(key);
    const same =
      found?.ended?.leaseId === leaseId &&
      found.task.attempt === attempt &&
      recorded(found.ended.end, found.ended.nowMs) === recorded(end, nowMs);
    return same ? found.task : undefined;
  }

  #attempts(leaseIds: readonly string[], chosen: (found: ModelTask) => boolean): Attempt[] {
    return this.#list("running")
      .filter((found) => found.leaseId !== undefined && leaseIds.includes(found.leaseId))
      .filter(chosen)
      .map(({ task: { deploymentId, taskId, attempt }, leaseId = "" }) => ({
        deploymentId,
        taskId,
        leaseId,
        attempt,
      }));
  }

  #list(status: Task["status"], deploymentId?: string): ModelTask[] {
    return [...this.tasks.values()].filter(
      ({ task }) =>
        task.status === status &&
        (deploymentId === undefined || task.deploymentId === deploymentId),
    );
  }
}

/** What is stored of an end. */
function recorded(end: AttemptEnd, nowMs: number): string {
  return JSON.stringify([{ ...end, unbegun: undefined }, nowMs]);
}

/** The endpoints of tasks, each once. */
function endpointsOf(found: readonly ModelTask[]) {
  const names = new Set(found.map(({ task }) => `${task.deploymentId}/${task.endpoint}`));
  return [...names].sort().map((name) => {
    const [deploymentId = "", endpoint = ""] = name.split("/");
    return { deploymentId, endpoint };
  });
}
