/**
 * The storage port over several Postgres databases: home, which has all but tasks, and the cells, each
 * with a part of the tasks. A task is in one database, which its id says, and all that is known of it is
 * there; its transactions are those of one database. What is asked of many tasks is asked of all of them
 * and put together.
 *
 * A cell's statements read home's rows from a copy (`mirror.ts`). What they write for home is moved there
 * before home is asked for it (`carry.ts`). A lease is in each database (`leases.ts`).
 *
 * A cell that is away takes no new tasks but those that have to be in it, and its tasks wait. Claims, counts
 * and maintenance leave it out. Lists and searches fail: an answer without a part of the tasks would be taken
 * for whole.
 */
import type { Payload } from "../../protocol/messages.ts";
import { HOME_CELL } from "../../tasks/id.ts";
import { SharedReads } from "../../time/shared-reads.ts";
import type { LaterClaim } from "../claims-by-key.ts";
import { prepared } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import type { QueueCount } from "../queues.ts";
import type {
  Attempt,
  Claimed,
  DeleteOutcome,
  NewTask,
  Placing,
  Storage,
  SubmitOutcome,
  TaskKey,
} from "../storage.ts";
import { moveBlobs } from "./blobs.ts";
import { type Cell, isUnanswered } from "./cell.ts";
import { Cells, type CellsOptions } from "./cells.ts";
import { cellsAccounts, cellsHosting } from "./home.ts";
import { CellLeases, isInDoubt } from "./leases.ts";
import {
  least,
  mergedPage,
  mergedStates,
  mergedSurvey,
  oldestOf,
  summedCounts,
  summedDue,
  summedStates,
} from "./merge.ts";
import { CellPlacement } from "./placement.ts";
import { type Limited, QueuedElsewhere } from "./queued-elsewhere.ts";

/** How old the counts of home may be when a claim leaves it out. */
const COUNTED_AT_HOME_FOR_MS = 200;

type ParametersOf<Name extends keyof Storage> = Storage[Name] extends
  | ((parameters: infer P) => unknown)
  | undefined
  ? P
  : never;

/** The methods that ask one task. */
type OfTask =
  | "getTask"
  | "getArguments"
  | "getResult"
  | "getHistory"
  | "readPieces"
  | "cancelTask"
  | "updateTask"
  | "findDeleted"
  | "requestAbort"
  | "queuePosition";

/** What home has of tasks that were deleted in a cell: messages to webhooks, and lines of workers. */
const FORGET = prepared(
  "forget_tasks_of_cells",
  `WITH told AS (
     DELETE FROM webhook_deliveries WHERE deployment_id = $1 AND task_id = ANY ($2::text[])
     RETURNING deployment_id, delivery_id
   ), ends AS (
     DELETE FROM carried_ends USING told WHERE carried_ends.deployment_id = told.deployment_id
       AND carried_ends.delivery_id = told.delivery_id
   )
   DELETE FROM deployment_logs WHERE organization_id = (
       SELECT organization_id FROM deployments WHERE deployments.deployment_id = $1)
     AND deployment_id = $1 AND task_id = ANY ($2::text[])`,
);

export class CellsStorage implements Storage {
  readonly capabilities = { shared: true, durable: true };
  readonly #cells: Cells;
  readonly #placement: CellPlacement;
  readonly #queued: QueuedElsewhere;
  /** Which database the next claim asks first. */
  #turn = 0;
  /** What waits and runs at home, by the deployment. */
  readonly #atHome = new SharedReads<QueueCount[]>({
    maxAgeMs: COUNTED_AT_HOME_FOR_MS,
    now: () => performance.now(),
  });
  readonly #rounds = new Rounds();

  readonly cells: ReadonlySet<number>;
  readonly accounts: Storage["accounts"];
  readonly hosting: Storage["hosting"];
  readonly metrics: Storage["metrics"];

  constructor(options: CellsOptions) {
    const cells = new Cells(options);
    const leases = new CellLeases(cells);
    this.#cells = cells;
    this.#placement = new CellPlacement(cells);
    this.#queued = new QueuedElsewhere(cells);
    this.cells = cells.numbers;
    this.accounts = cellsAccounts(cells);
    this.hosting = cellsHosting(cells);
    this.metrics = cells.home.metrics;
    this.openLease = (parameters) => leases.openLease(parameters);
    this.adoptLease = (parameters) => leases.adoptLease(parameters);
    this.renewLeases = (parameters) => leases.renewLeases(parameters);
    this.closeLease = (parameters) => leases.closeLease(parameters);
    this.rescueExpired = (parameters) => leases.rescueExpired(parameters);
  }

  start(): Promise<void> {
    return this.#cells.start();
  }

  placeTask(placing: Placing): Promise<number> {
    return this.#placement.place(placing);
  }

  readonly openLease: Storage["openLease"];
  readonly adoptLease: Storage["adoptLease"];
  readonly renewLeases: Storage["renewLeases"];
  readonly closeLease: Storage["closeLease"];
  readonly rescueExpired: Storage["rescueExpired"];

  async submitTasks({ tasks }: ParametersOf<"submitTasks">): Promise<SubmitOutcome[]> {
    // Before any is stored: who is refused calls again, and the others would be stored twice.
    this.#cells.refuseAway(tasks.map(({ taskId }) => this.#cells.cellOf(taskId)));
    const leases = tasks.flatMap(({ taskId, leaseId }) =>
      leaseId === undefined ? [] : [{ leaseId, cell: this.#cells.cellOf(taskId) }],
    );
    const submitting = this.#split(
      tasks,
      (one) => one.taskId,
      async (some, storage, cell) => {
        if (cell !== HOME_CELL) {
          await moveBlobs(
            this.#cells.home,
            storage,
            some.map((task) => task.arguments),
          );
        }
        const limited = await this.#queued.limit(some, cell);
        const outcomes = await storage.submitTasks({ tasks: limited.map(({ task }) => task) });
        if (cell === HOME_CELL) {
          this.#cameHome(some);
        }
        return outcomes.map((outcome, at) =>
          outcome.outcome === "queue_full" ? ofAll(outcome, limited[at]) : outcome,
        );
      },
    );
    return this.#doubting(leases, submitting);
  }

  async fireSchedule(firing: ParametersOf<"fireSchedule">): ReturnType<Storage["fireSchedule"]> {
    const { end } = firing;
    if (end.outcome !== "task") {
      return this.#cells.home.fireSchedule(firing);
    }
    const [limited] = await this.#queued.limit([end.task], HOME_CELL);
    const task = limited?.task ?? end.task;
    const fired = await this.#cells.home.fireSchedule({ ...firing, end: { ...end, task } });
    this.#cameHome([task]);
    return fired?.outcome === "queue_full" ? ofAll(fired, limited) : fired;
  }

  getTask = this.#ofTask("getTask");
  getArguments = this.#ofTask("getArguments");
  getResult = this.#ofTask("getResult");
  getHistory = this.#ofTask("getHistory");
  readPieces = this.#ofTask("readPieces");
  cancelTask = this.#ofTask("cancelTask");
  updateTask = this.#ofTask("updateTask");
  findDeleted = this.#ofTask("findDeleted");
  requestAbort = this.#ofTask("requestAbort");
  queuePosition = this.#ofTask("queuePosition");

  /**
   * Asks one database after the other, beginning with another each time, until it has what is wanted. Home is
   * left out where it has no task of the endpoints.
   */
  async claimTasks(parameters: ParametersOf<"claimTasks">): Promise<Claimed> {
    const atHome = await this.#mayBeAtHome(parameters);
    const databases = [...(atHome ? [undefined] : []), ...this.#cells.up];
    this.#turn = (this.#turn + 1) % Math.max(databases.length, 1);
    const inTurn = [...databases.slice(this.#turn), ...databases.slice(0, this.#turn)];
    const tasks: Claimed["tasks"][number][] = [];
    const later = new Map<string, LaterClaim>();
    const due: NonNullable<Claimed["due"]>[number][] = [];
    let wanted = parameters.claims;
    const doubtful: string[] = [];
    let failure: unknown;
    const answered: (Cell | undefined)[] = [];
    for (const cell of inTurn) {
      const asked = { ...parameters, claims: wanted };
      try {
        const claimed = await (cell === undefined
          ? this.#cells.home.claimTasks(asked)
          : this.#doubting(
              wanted.map(({ leaseId }) => ({ leaseId, cell: cell.number })),
              cell.ask((storage) => storage.claimTasks(asked)),
            ));
        answered.push(cell);
        tasks.push(...claimed.tasks);
        due.push(...(claimed.due ?? []));
        for (const one of claimed.later) {
          later.set(one.endpoint, sooner(one, later.get(one.endpoint)));
          this.#rounds.add(`${parameters.deploymentId} ${one.endpoint}`, cell, one.cut);
        }
        wanted = rest(wanted, claimed);
      } catch (err) {
        if (!isUnanswered(err)) {
          throw err;
        }
        failure = err;
        doubtful.push(...wanted.map(({ leaseId }) => leaseId));
      }
      if (wanted.length === 0) {
        break;
      }
    }
    // A count that found nothing at home is an answer, too.
    if (answered.length === 0 && atHome) {
      throw failure;
    }
    const short = new Set(wanted.map(({ endpoint }) => endpoint));
    return {
      tasks,
      later: [...later.values()]
        .filter(({ endpoint }) => short.has(endpoint))
        .map(({ cut, ...one }) => ({
          ...one,
          ...(cut && {
            cut: this.#rounds.end(`${parameters.deploymentId} ${one.endpoint}`, answered),
          }),
        })),
      ...(due.length > 0 && { due }),
      ...(doubtful.length > 0 && { doubtful }),
    };
  }

  endAttempts({ nowMs, ends }: ParametersOf<"endAttempts">): ReturnType<Storage["endAttempts"]> {
    return this.#split(
      ends,
      ({ attempt }) => attempt.taskId,
      async (some, storage, cell) => {
        if (cell !== HOME_CELL) {
          const results = some.flatMap(({ end }): readonly Payload[] =>
            end.status === "success" ? [end.result] : [],
          );
          await moveBlobs(this.#cells.home, storage, results);
        }
        return storage.endAttempts({ nowMs, ends: some });
      },
    );
  }

  recordEvents({ events }: ParametersOf<"recordEvents">): ReturnType<Storage["recordEvents"]> {
    return this.#split(
      events,
      ({ attempt }) => attempt.taskId,
      (some, storage) => storage.recordEvents({ events: some }),
    );
  }

  async appendPieces({ appends }: ParametersOf<"appendPieces">): Promise<boolean[]> {
    return this.#split(
      appends,
      ({ attempt }) => attempt.taskId,
      (some, storage) => storage.appendPieces({ appends: some }),
    );
  }

  /** Rejects where a cell that may have given tasks to one of the leases does not answer. */
  listAttempts({ leaseIds, cell }: ParametersOf<"listAttempts">): Promise<Attempt[]> {
    const isAsked = (number: number | undefined): boolean => cell === undefined || cell === number;
    const inDoubt = this.#cells.list.filter(
      (one) => isAsked(one.number) && isInDoubt(one, leaseIds),
    );
    return this.#flat(
      async (storage, number) => (isAsked(number) ? storage.listAttempts({ leaseIds }) : []),
      inDoubt,
    );
  }

  listAborts(parameters: ParametersOf<"listAborts">): Promise<Attempt[]> {
    return this.#flat((storage) => storage.listAborts(parameters));
  }

  async deleteTasks({
    deploymentId,
    taskIds,
    nowMs,
  }: ParametersOf<"deleteTasks">): Promise<DeleteOutcome[]> {
    return this.#split(
      taskIds,
      (taskId) => taskId,
      async (some, storage, cell) => {
        const outcomes = await storage.deleteTasks({ deploymentId, taskIds: some, nowMs });
        // Also of those that are not there any more: an earlier call may not have come so far.
        const gone = some.filter((_, at) => outcomes[at] !== "running");
        if (cell !== HOME_CELL && gone.length > 0) {
          await this.#cells.home.beside((db) => db.query(FORGET, deploymentId, gone));
        }
        return outcomes;
      },
      "not_found",
    );
  }

  expireTasks(parameters: ParametersOf<"expireTasks">): ReturnType<Storage["expireTasks"]> {
    return this.#flat((storage) => storage.expireTasks(parameters));
  }

  async survey(parameters: ParametersOf<"survey">): ReturnType<Storage["survey"]> {
    const found = await this.#cells.each(async (storage, number) => {
      const survey = await storage.survey(parameters);
      if (number === HOME_CELL) {
        // The claims that follow ask home, also where it was counted just before.
        this.#cameHome([...survey.due, ...survey.suspects]);
      }
      return survey;
    });
    return mergedSurvey(found);
  }

  async pruneFinished(parameters: ParametersOf<"pruneFinished">): Promise<number> {
    return Math.max(...(await this.#cells.each((storage) => storage.pruneFinished(parameters))));
  }

  async pruneDeleted(parameters: ParametersOf<"pruneDeleted">): Promise<number> {
    return sum(await this.#cells.each((storage) => storage.pruneDeleted(parameters)));
  }

  /** At home: `moveBlobs` takes them to the cell of their task. */
  registerBlobs(parameters: ParametersOf<"registerBlobs">): Promise<void> {
    return this.#cells.home.registerBlobs(parameters);
  }

  async releaseBlobs(parameters: ParametersOf<"releaseBlobs">): Promise<void> {
    await this.#cells.each((storage) => storage.releaseBlobs(parameters));
  }

  takeDeadBlobs(parameters: ParametersOf<"takeDeadBlobs">): Promise<string[]> {
    return this.#flat((storage) => storage.takeDeadBlobs(parameters));
  }

  async forgetBlobs(parameters: ParametersOf<"forgetBlobs">): Promise<void> {
    await this.#cells.each((storage) => storage.forgetBlobs(parameters));
  }

  findBlobs(): Promise<string[]> {
    return this.#flat((storage) => storage.findBlobs());
  }

  beginEpoch = async (parameters: ParametersOf<"beginEpoch">): Promise<number> =>
    sum(await this.#cells.all((storage) => storage.beginEpoch(parameters)));

  async listTasks(listing: ParametersOf<"listTasks">): ReturnType<Storage["listTasks"]> {
    return mergedPage(
      await this.#cells.all((storage) => storage.listTasks(listing)),
      listing.limit,
    );
  }

  async searchTasks(search: ParametersOf<"searchTasks">): ReturnType<Storage["searchTasks"]> {
    return mergedPage(
      await this.#cells.all((storage) => storage.searchTasks(search)),
      search.limit,
    );
  }

  async searchKeys(search: ParametersOf<"searchKeys">): ReturnType<Storage["searchKeys"]> {
    const pages = await this.#cells.all((storage) => storage.searchKeys(search));
    const { tasks: keys, nextBefore } = mergedPage(
      pages.map((page) => ({ tasks: [...page.keys], nextBefore: page.nextBefore })),
      search.limit,
    );
    return { keys, nextBefore };
  }

  async countStates(asked: ParametersOf<"countStates">): ReturnType<Storage["countStates"]> {
    return summedStates(await this.#cells.all((storage) => storage.countStates(asked)));
  }

  async countTasks(asked: ParametersOf<"countTasks">): ReturnType<Storage["countTasks"]> {
    return summedCounts(await this.#cells.each((storage) => storage.countTasks(asked)));
  }

  async countDue(asked: ParametersOf<"countDue">): ReturnType<Storage["countDue"]> {
    return summedDue(await this.#cells.each((storage) => storage.countDue(asked)), asked.limit);
  }

  async oldestWaiting(asked: ParametersOf<"oldestWaiting">): ReturnType<Storage["oldestWaiting"]> {
    return oldestOf(await this.#cells.each((storage) => storage.oldestWaiting(asked)));
  }

  async queueStates(asked: ParametersOf<"queueStates">): ReturnType<Storage["queueStates"]> {
    return mergedStates(await this.#cells.each((storage) => storage.queueStates(asked)));
  }

  async nextSuspect(asked: ParametersOf<"nextSuspect">): Promise<number | undefined> {
    return least(await this.#cells.each((storage) => storage.nextSuspect(asked)));
  }

  async nextRunAt(asked: ParametersOf<"nextRunAt">): Promise<number | undefined> {
    return least(await this.#cells.each((storage) => storage.nextRunAt(asked)));
  }

  async describeDatabase(): ReturnType<Storage["describeDatabase"]> {
    const all = await this.#cells.each((storage) => storage.describeDatabase());
    const sum = (of: "queued" | "running"): number =>
      all.reduce((total, one) => total + one[of], 0);
    const [home] = all;
    if (home === undefined) {
      throw new Error("home is among what is asked of each");
    }
    const cells = this.#cells.list.map(({ name, isUp }) => ({ name, up: isUp }));
    return { ...home, queued: sum("queued"), running: sum("running"), cells };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cells[Symbol.asyncDispose]();
  }

  /** Whether a claim may find a task at home, as counted a moment ago; one that runs may go back. */
  async #mayBeAtHome({ deploymentId, claims }: ParametersOf<"claimTasks">): Promise<boolean> {
    try {
      const counts = await this.#atHome.get(deploymentId, () => this.#countAtHome(deploymentId));
      return counts.some(
        ({ endpoint, queued, running }) =>
          queued + running > 0 && claims.some((claim) => claim.endpoint === endpoint),
      );
    } catch {
      // The claim finds out whether home answers.
      return true;
    }
  }

  /** Tasks are at home, where none may have been a moment ago. */
  #cameHome(tasks: readonly Pick<NewTask, "deploymentId">[]): void {
    for (const deploymentId of new Set(tasks.map((task) => task.deploymentId))) {
      this.#atHome
        .again(deploymentId, () => this.#countAtHome(deploymentId))
        .catch(() => {
          // It is not kept: the next claim counts.
        });
    }
  }

  #countAtHome(deploymentId: string): Promise<QueueCount[]> {
    return this.#cells.home.countTasks({ deploymentId });
  }

  /** Rejects where one of `needed` does not answer; others are left out then. */
  async #flat<Item>(
    question: (storage: PostgresStorage, number: number) => Promise<Item[]>,
    needed: readonly Cell[] = [],
  ): Promise<Item[]> {
    return (await this.#cells.each(question, needed)).flat();
  }

  /** Remembers leases under which cells may have carried out what they did not answer. */
  async #doubting<Answer>(
    leases: readonly { readonly leaseId: string; readonly cell: number | undefined }[],
    asked: Promise<Answer>,
  ): Promise<Answer> {
    try {
      return await asked;
    } catch (err) {
      for (const { leaseId, cell } of leases) {
        this.#cells.list.find(({ number }) => number === cell)?.doubtful.add(leaseId);
      }
      throw err;
    }
  }

  #ofTask<Name extends OfTask>(name: Name): Storage[Name] {
    const ask = (parameters: TaskKey): Promise<unknown> =>
      this.#cells.of(parameters.taskId, (storage) => {
        const method = storage[name] as unknown as (given: TaskKey) => Promise<unknown>;
        return method.call(storage, parameters);
      });
    return ask as unknown as Storage[Name];
  }

  /** Asks each cell about its part of the items, and answers in their order. */
  async #split<Item, Answer>(
    items: readonly Item[],
    taskIdOf: (item: Item) => string,
    ask: (items: readonly Item[], storage: PostgresStorage, cell: number) => Promise<Answer[]>,
    missing?: Answer,
  ): Promise<Answer[]> {
    const parts = Map.groupBy(items, (item) => this.#cells.cellOf(taskIdOf(item)));
    const answered = await Promise.all(
      [...parts].map(async ([cell, part]) => {
        const answers = await this.#cells.at(cell, (storage) => ask(part, storage, cell));
        return [cell, (answers ?? part.map(() => missing as Answer)).values()] as const;
      }),
    );
    const answers = new Map(answered);
    return items.map(
      (item) => answers.get(this.#cells.cellOf(taskIdOf(item)))?.next().value as Answer,
    );
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** A full queue with what waits of it in the other databases. */
function ofAll(
  full: Extract<SubmitOutcome, { readonly outcome: "queue_full" }>,
  limited: Limited | undefined,
): SubmitOutcome {
  return { ...full, queued: full.queued + (limited?.elsewhere ?? 0) };
}

type Claims = ParametersOf<"claimTasks">["claims"];

/** What two databases say of later claims of one endpoint. */
function sooner(one: LaterClaim, other: LaterClaim | undefined): LaterClaim {
  const times = [one, other].flatMap((each) => (each?.inMs === undefined ? [] : [each.inMs]));
  return {
    endpoint: one.endpoint,
    ...(times.length > 0 && { inMs: Math.min(...times) }),
    cut: one.cut ?? other?.cut,
  };
}

/** Which databases have come past the last key of an endpoint, where their claims are cut. */
class Rounds {
  readonly #open = new Map<string, Map<Cell | undefined, boolean>>();

  add(endpoint: string, cell: Cell | undefined, cut: LaterClaim["cut"]): void {
    const own = this.#open.get(endpoint) ?? new Map<Cell | undefined, boolean>();
    if (cut === undefined) {
      own.delete(cell);
    } else {
      own.set(cell, cut === "around" || own.get(cell) === true);
      this.#open.set(endpoint, own);
    }
  }

  /** "around" when all that have answered this claim have since said so; nobody waits for the others. */
  end(endpoint: string, answered: readonly (Cell | undefined)[]): LaterClaim["cut"] {
    const own = this.#open.get(endpoint);
    if (answered.some((cell) => own?.get(cell) === false)) {
      return "on";
    }
    this.#open.delete(endpoint);
    return "around";
  }
}

/** What is wanted after some of it was claimed. */
function rest(claims: Claims, { tasks }: Claimed): Claims {
  const taken = Map.groupBy(tasks, ({ task, leaseId }) => `${task.endpoint}/${leaseId}`);
  return claims.flatMap((claim) => {
    const got = taken.get(`${claim.endpoint}/${claim.leaseId}`)?.splice(0, claim.limit).length ?? 0;
    return got < claim.limit ? [{ ...claim, limit: claim.limit - got }] : [];
  });
}
