/**
 * The Postgres adapter of the storage port, shared by any number of nodes.
 *
 * Frequent calls (submits, ends, events, cancels, counts) are batched, with one batch of
 * each kind at a time; all others are single queries on the pool. Calls with
 * large payloads or many tasks have their own batches, each a transaction of
 * several statements, so that small calls do not wait behind them.
 */
import type { Payload } from "../../protocol/messages.ts";
import { RESULT_GONE } from "../../tasks/failure.ts";
import type { Task } from "../../tasks/task.ts";
import type { Migrated, MigrationMode } from "../migration.ts";
import type { QueueCount } from "../queues.ts";
import type { CancelOutcome, NewTask, Storage, SubmitOutcome, TaskKey } from "../storage.ts";
import { unavailable } from "../unavailable.ts";
import { listAborts, listAttempts, requestAbort } from "./attempts.ts";
import { CallBatcher } from "./batch.ts";
import {
  findBlobs,
  forgetBlobs,
  registerBlobs,
  releaseBlobs,
  takeDeadBlobs,
  withoutBlobs,
} from "./blobs.ts";
import { cancelTasks } from "./cancel.ts";
import { claimTasks, countDue, nextRunAt, nextSuspect } from "./claim.ts";
import { DEFAULT_STATEMENT_TIMEOUT_MS } from "./connection.ts";
import { CountFolder, countTasks } from "./counts.ts";
import type { PostgresDatabase } from "./database.ts";
import { deleteTasks, findDeleted } from "./delete.ts";
import { describeDatabase } from "./describe.ts";
import { type Ending, endAttempts, resultOf } from "./end-attempt.ts";
import { beginEpoch } from "./epoch.ts";
import { type AttemptEvent, recordEvents } from "./events.ts";
import { expireTasks } from "./expire.ts";
import { fireSchedule } from "./fire-schedule.ts";
import {
  adoptLease,
  closeLease,
  type LeaseClock,
  type LeaseTime,
  openLease,
  renewLeases,
  rescueExpired,
} from "./leases.ts";
import { listTasks } from "./list.ts";
import { MIN_WITNESS_AGE_MS, type NodeSession } from "./node-session.ts";
import { type OpenOptions, openDatabase } from "./open.ts";
import { postgresAccounts, postgresHosting, postgresMetrics } from "./operations.ts";
import { isInline, readPayload } from "./payloads.ts";
import { appendPieces, readPieces } from "./pieces.ts";
import { Pruner } from "./prune.ts";
import { findResults, type ResultColumn, readArguments, readHistory, readTasks } from "./read.ts";
import { nameOf } from "./rows.ts";
import { countStates, searchKeys, searchTasks } from "./search.ts";
import { type Session, statement } from "./session.ts";
import { sideBySide } from "./side-by-side.ts";
import { submitTasks } from "./submit.ts";
import { needsLook } from "./submit-lookup.ts";
import { survey } from "./survey.ts";
import { updateTask } from "./update.ts";
import { oldestWaiting, queuePosition, queueStates } from "./waiting.ts";
import { withoutWebhook, withRetriedWebhooks } from "./webhooks.ts";

/** Connections of a node to the database by default. */
const DEFAULT_STORAGE_CONNECTIONS = 10;

/** Calls in one batch. */
const MAX_BATCH_CALLS = 500;

/** Batches of reads under way at a time, so that one that was just missed is not waited for. */
const MAX_READ_BATCHES = 2;

/** Calls of many tasks or large payloads in one transaction. */
const MAX_LARGE_BATCH_CALLS = 16;

export interface PostgresOptions {
  /** The schema of the tables; created when missing. Default `tessera`. */
  readonly schema?: string;
  /** Maximum number of connections. Default 10: batches use five, single queries the others. */
  readonly connections?: number;
  /** Timeout of one statement in milliseconds. Default 5,000. */
  readonly timeoutMs?: number;
  /**
   * The clock by which leases expire. Default `database`, the clock that all
   * nodes share; `caller` takes the time from each call, for tests that move
   * it.
   */
  readonly leaseClock?: "database" | "caller";
  /** The node's session, which its notifier holds. Default: none. */
  readonly session?: Partial<NodeSession> | undefined;
  /** An address of the same database without a pooler, for migrations. Default: the one address. */
  readonly directUrl?: string | undefined;
  /** Told what is weaker than it could be. Default: nobody. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** What to do about a schema of an earlier version. Default `auto`. */
  readonly migration?: MigrationMode;
  /** Called by `start` when it has migrated the schema. */
  readonly onMigrated?: (migrated: Migrated) => void;
  /** Looks at the database that `start` has opened; what it throws is why it cannot be used. */
  readonly check?: (session: Session) => Promise<void>;
}

type ParametersOf<Name extends keyof Storage> = Storage[Name] extends (
  parameters: infer P,
) => unknown
  ? P
  : never;

export class PostgresStorage implements Storage {
  readonly capabilities = { shared: true, durable: true };
  readonly #options: OpenOptions;
  readonly #check: PostgresOptions["check"];
  readonly #clock: LeaseClock;
  readonly #leaseTime: LeaseTime;
  readonly #pruner = new Pruner();
  #db: PostgresDatabase | undefined;
  #folder: CountFolder | undefined;

  /** Submits that have something to look up first: a key, or the length of a queue. */
  readonly #submits = new CallBatcher<NewTask, SubmitOutcome>({
    maxCalls: MAX_BATCH_CALLS,
    heedsRepetition: true,
    run: (tasks, repeated) => this.#moved(submitTasks(this.#open, marked(tasks, repeated))),
  });
  readonly #largeSubmits = new CallBatcher<readonly NewTask[], SubmitOutcome[]>({
    maxCalls: MAX_LARGE_BATCH_CALLS,
    heedsRepetition: true,
    run: (calls, repeated) =>
      this.#moved(
        submitLarge(
          this.#open,
          calls.map((tasks) => marked(tasks, repeated)),
        ),
      ),
  });
  /** Ends, and submits that start at once: each batch is one transaction and one round trip. */
  readonly #writes = new CallBatcher<Write, Written>({
    maxCalls: MAX_BATCH_CALLS,
    heedsRepetition: true,
    run: (writes, repeated) => this.#moved(write(this.#open, writes, repeated)),
  });
  readonly #largeEnds = new CallBatcher<Ending, Task | undefined>({
    maxCalls: MAX_LARGE_BATCH_CALLS,
    run: (endings) =>
      this.#moved(this.#open.transaction((session) => endWithBlobs(session, endings))),
  });
  readonly #events = new CallBatcher<AttemptEvent, number | undefined>({
    maxCalls: MAX_BATCH_CALLS,
    run: (events) => recordEvents(this.#open, events),
  });

  /** Batched, because many are cancelled at once by a filter. */
  readonly #cancels = new CallBatcher<ParametersOf<"cancelTask">, CancelOutcome | undefined>({
    maxCalls: MAX_BATCH_CALLS,
    run: (cancelled) => this.#moved(cancelTasks(this.#open, cancelled)),
  });

  /** Batched, because callers that wait at another node hear of many ends at once. */
  readonly #reads = new CallBatcher<TaskKey, Task | undefined>({
    maxCalls: MAX_BATCH_CALLS,
    maxBatches: MAX_READ_BATCHES,
    run: async (keys) => {
      const found = await readTasks(this.#open, keys);
      return keys.map((key) => found.get(nameOf(key)));
    },
  });
  readonly #results = new CallBatcher<TaskKey, ResultColumn | undefined>({
    maxCalls: MAX_BATCH_CALLS,
    maxBatches: MAX_READ_BATCHES,
    run: (keys) => findResults(this.#open, keys),
  });

  /** Batched, because a node counts all of its deployments at the same time. */
  readonly #counts = new CallBatcher<ParametersOf<"countTasks">, QueueCount[]>({
    maxCalls: MAX_BATCH_CALLS,
    run: (asked) => countTasks(this.#open, asked),
  });

  /** `url` is of the form `postgres://user:password@host:port/database`, with one host or several. */
  constructor(url: string, options: PostgresOptions = {}) {
    const {
      schema = "tessera",
      connections = DEFAULT_STORAGE_CONNECTIONS,
      timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS,
      leaseClock,
      session = {},
      directUrl,
      onWarning,
      migration = "auto",
      onMigrated,
      check,
    } = options;
    this.#check = check;
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
      throw new Error(`${schema} cannot be the name of a schema: use a-z, 0-9 and _`);
    }
    this.#options = {
      url,
      directUrl,
      schema,
      connections,
      timeoutMs,
      onWarning,
      migration,
      onMigrated,
    };
    this.#clock = leaseClock === "caller" ? (nowMs) => nowMs : () => null;
    const { name = null, minAgeMs = MIN_WITNESS_AGE_MS } = session;
    this.#leaseTime = { clock: this.#clock, session: { name, minAgeMs } };
  }

  async start(): Promise<void> {
    const db = await openDatabase(this.#options);
    try {
      await this.#check?.(db);
    } catch (err) {
      await db[Symbol.asyncDispose]();
      throw err;
    }
    this.#db = db;
    this.#folder = new CountFolder(db);
  }

  /** Sends a notification over one of the connections that work, as another node would. */
  async notify(channel: string): Promise<void> {
    await this.#open.query(NOTIFY, channel);
  }

  /** Uses the database for what stands beside the port. */
  async beside<Answer>(work: (db: PostgresDatabase) => Promise<Answer>): Promise<Answer> {
    return work(this.#open);
  }

  async submitTasks({ tasks: given }: ParametersOf<"submitTasks">): Promise<SubmitOutcome[]> {
    const tasks = await withRetriedWebhooks(this.#open, given);
    const [task] = tasks;
    const named = tasks.some(({ webhook }) => webhook !== undefined);
    const refused = named ? await withoutWebhook(this.#open, tasks) : new Set();
    if (refused.size > 0) {
      const others = tasks.filter((one) => !refused.has(one));
      const stored = (
        others.length === 0 ? [] : await this.submitTasks({ tasks: others })
      ).values();
      return tasks.map((one) =>
        refused.has(one) ? { outcome: "webhook_unknown" } : (stored.next().value as SubmitOutcome),
      );
    }
    if (task === undefined || tasks.length > 1 || !isInline(task.arguments)) {
      return this.#largeSubmits.add(tasks);
    }
    return [
      needsLook(task)
        ? await this.#submits.add(task)
        : ((await this.#writes.add({ task })) as SubmitOutcome),
    ];
  }

  endAttempts({ nowMs, ends }: ParametersOf<"endAttempts">): Promise<(Task | undefined)[]> {
    // All ends of a call go into the same batch: an attempt may occur twice, and
    // the first end must be recorded first.
    const small = ends.every(({ end }) => {
      const result = resultOf(end);
      return result === undefined || isInline(result);
    });
    const add = (ending: Ending): Promise<Task | undefined> =>
      small
        ? (this.#writes.add({ ending }) as Promise<Task | undefined>)
        : this.#largeEnds.add(ending);
    return Promise.all(ends.map((ended) => add({ ...ended, nowMs })));
  }

  recordEvents({ events }: ParametersOf<"recordEvents">): Promise<(number | undefined)[]> {
    return Promise.all(events.map((event) => this.#events.add(event)));
  }

  fireSchedule = this.#question((db, firing: ParametersOf<"fireSchedule">) =>
    this.#moved(fireSchedule(db, firing)),
  );
  claimTasks = this.#question((db, parameters: ParametersOf<"claimTasks">) =>
    this.#moved(claimTasks(db, this.#clock, parameters)),
  );
  cancelTask = (cancelled: ParametersOf<"cancelTask">) => this.#cancels.add(cancelled);
  deleteTasks = this.#question((db, parameters: ParametersOf<"deleteTasks">) =>
    this.#moved(deleteTasks(db, parameters)),
  );
  updateTask = this.#question(updateTask);
  findDeleted = this.#question(findDeleted);
  expireTasks = this.#question((db, parameters: ParametersOf<"expireTasks">) =>
    this.#moved(expireTasks(db, parameters)),
  );
  getTask = (key: TaskKey) => this.#reads.add(key);
  getArguments = this.#question(readArguments);
  getResult = async (key: TaskKey): Promise<Payload | undefined> => {
    const found = await this.#results.add(key);
    return found && readPayload(this.#open, { ...key, side: "result" }, found.inline);
  };
  getHistory = this.#question(readHistory);
  appendPieces = this.#question(appendPieces);
  readPieces = this.#question(readPieces);
  requestAbort = this.#question(requestAbort);
  listAborts = this.#question(listAborts);
  listAttempts = this.#question(listAttempts);
  openLease = this.#question((db, parameters: ParametersOf<"openLease">) =>
    openLease(db, this.#leaseTime, parameters),
  );
  adoptLease = this.#question((db, parameters: ParametersOf<"adoptLease">) =>
    adoptLease(db, this.#leaseTime, parameters),
  );
  renewLeases = this.#question((db, parameters: ParametersOf<"renewLeases">) =>
    renewLeases(db, this.#clock, parameters),
  );
  survey = this.#question((db, parameters: ParametersOf<"survey">) =>
    survey(db, this.#leaseTime, parameters),
  );
  closeLease = this.#question(closeLease);
  rescueExpired = this.#question((db, parameters: ParametersOf<"rescueExpired">) =>
    rescueExpired(db, this.#leaseTime, parameters),
  );
  beginEpoch = this.#question((db, parameters: ParametersOf<"beginEpoch">) =>
    this.#moved(beginEpoch(db, parameters)),
  );
  pruneFinished = this.#question((db, parameters: ParametersOf<"pruneFinished">) =>
    this.#pruner.finished(db, this.#clock, parameters),
  );
  pruneDeleted = this.#question((db, parameters: ParametersOf<"pruneDeleted">) =>
    this.#moved(this.#pruner.deleted(db, parameters)),
  );
  registerBlobs = this.#question(registerBlobs);
  releaseBlobs = this.#question(releaseBlobs);
  takeDeadBlobs = this.#question(takeDeadBlobs);
  forgetBlobs = this.#question(forgetBlobs);
  findBlobs = async () => findBlobs(this.#open);
  listTasks = this.#question(listTasks);
  searchTasks = this.#question(searchTasks);
  searchKeys = this.#question(searchKeys);
  countStates = this.#question(countStates);
  queuePosition = this.#question(queuePosition);
  countTasks = (asked: ParametersOf<"countTasks">) => this.#counts.add(asked);
  countDue = this.#question(countDue);
  nextSuspect = this.#question((db, parameters: ParametersOf<"nextSuspect">) =>
    nextSuspect(db, this.#clock, parameters),
  );
  oldestWaiting = this.#question(oldestWaiting);
  queueStates = this.#question(queueStates);
  describeDatabase = () => this.#question(describeDatabase)(undefined);
  nextRunAt = this.#question(nextRunAt);

  readonly accounts = postgresAccounts(() => this.#open);
  readonly hosting = postgresHosting(
    () => this.#open,
    (nowMs) => this.#clock(nowMs),
  );

  readonly metrics = postgresMetrics(
    () => this.#open,
    (nowMs) => this.#clock(nowMs),
  );

  async [Symbol.asyncDispose](): Promise<void> {
    const db = this.#db;
    this.#db = undefined;
    const lanes = [
      ...[this.#submits, this.#largeSubmits, this.#writes, this.#largeEnds],
      ...[this.#events, this.#cancels, this.#counts, this.#reads, this.#results],
    ];
    await Promise.all(lanes.map((lane) => lane.close()));
    await db?.[Symbol.asyncDispose]();
  }

  get #open(): PostgresDatabase {
    if (this.#db === undefined) {
      throw unavailable(new Error("the storage is not started, or has ended"));
    }
    return this.#db;
  }

  /** Makes a method of the port that queries the database directly. */
  #question<Parameters, Answer>(
    ask: (db: PostgresDatabase, parameters: Parameters) => Promise<Answer>,
  ): (parameters: Parameters) => Promise<Answer> {
    return async (parameters) => ask(this.#open, parameters);
  }

  /** Tells the count folder about a call that may have moved tasks. */
  async #moved<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const answered = await answer;
    this.#folder?.written();
    return answered;
  }
}

const NOTIFY = statement("SELECT pg_notify($1, '')");

/** A small write: a submit without anything to look up, or an end. */
type Write = { readonly task: NewTask } | { readonly ending: Ending };

/** What a write answers: of a submit its outcome, of an end the task. */
type Written = SubmitOutcome | Task | undefined;

/**
 * Carries out writes of both kinds. Submits go first: they lock their leases, and what closes a
 * lease locks that before its attempts.
 */
async function write(
  db: PostgresDatabase,
  writes: readonly Write[],
  repeated: boolean,
): Promise<Written[]> {
  const tasks = writes.flatMap((each) => ("task" in each ? each.task : []));
  const endings = writes.flatMap((each) => ("ending" in each ? each.ending : []));
  const submit = (session: Session) => submitTasks(session, marked(tasks, repeated));
  const end = (session: Session) => endAttempts(session, endings);
  let outcomes: readonly SubmitOutcome[] = [];
  let ended: readonly (Task | undefined)[] = [];
  if (endings.length === 0) {
    outcomes = await submit(db);
  } else if (tasks.length === 0) {
    ended = await end(db);
  } else {
    [outcomes, ended] = await sideBySide(db, submit, end);
  }
  const [stored, tasksNow] = [outcomes.values(), ended.values()];
  return writes.map((each) => ("task" in each ? stored.next().value : tasksNow.next().value));
}

/** Tasks of a batch that failed after a part of it was stored. */
function marked(tasks: readonly NewTask[], repeated: boolean): readonly NewTask[] {
  return repeated ? tasks.map((task) => ({ ...task, repeated })) : tasks;
}

/** Runs all calls in one transaction; each is stored atomically. */
async function submitLarge(
  db: PostgresDatabase,
  calls: readonly (readonly NewTask[])[],
): Promise<SubmitOutcome[][]> {
  const outcomes = await db.transaction((session) => submitWithBlobs(session, calls.flat()));
  let next = 0;
  return calls.map(({ length }) => {
    next += length;
    return outcomes.slice(next - length, next);
  });
}

/** Does not store a task whose files are gone, unless it was stored already. */
async function submitWithBlobs(
  session: Session,
  tasks: readonly NewTask[],
): Promise<SubmitOutcome[]> {
  const gone = await withoutBlobs(
    session,
    tasks.map((task) => task.arguments),
  );
  if (gone.size === 0) {
    return submitTasks(session, tasks);
  }
  const lacking = tasks.filter((task) => gone.has(task.arguments));
  const there = await readTasks(session, lacking);
  const others = tasks.filter((task) => !lacking.includes(task));
  const stored = (await submitTasks(session, others)).values();
  return tasks.map((task) => {
    const earlier = there.get(nameOf(task));
    const outcome: SubmitOutcome = earlier
      ? { outcome: "stored", task: earlier }
      : { outcome: "blobs_gone" };
    return lacking.includes(task) ? outcome : (stored.next().value as SubmitOutcome);
  });
}

/** Requeues an attempt whose result's files are gone. */
async function endWithBlobs(
  session: Session,
  endings: readonly Ending[],
): Promise<(Task | undefined)[]> {
  const gone = await withoutBlobs(
    session,
    endings.flatMap(({ end }) => (end.status === "success" ? [end.result] : [])),
  );
  const recorded = endings.map((ending): Ending => {
    const { end, nowMs } = ending;
    return end.status === "success" && gone.has(end.result)
      ? {
          ...ending,
          end: { status: "queued", runAtMs: nowMs, failed: false, failure: RESULT_GONE },
        }
      : ending;
  });
  return endAttempts(session, recorded);
}
