/**
 * Postgres behind the storage port, shared by as many nodes as connect.
 *
 * What comes in numbers (submits, ends, events, counts) is batched, one batch of each
 * kind under way at a time; the rest are questions on the pool. Calls that
 * move large payloads, or store many tasks at once, have batches of their own,
 * each a transaction of several statements, so that the small ones do not wait
 * behind them.
 */
import type { Task } from "../../tasks/task.ts";
import type { NewTask, QueueCount, Storage, SubmitOutcome } from "../storage.ts";
import { unavailable } from "../unavailable.ts";
import { postgresAccounts } from "./accounts.ts";
import { listAborts, listAttempts, requestAbort } from "./attempts.ts";
import { CallBatcher } from "./batch.ts";
import { forgetBlobs, registerBlobs, releaseBlobs, takeDeadBlobs, withoutBlobs } from "./blobs.ts";
import { claimTasks, countDue, nextRunAt } from "./claim.ts";
import { refusal } from "./connect.ts";
import { CountFolder, countTasks } from "./counts.ts";
import { PostgresDatabase } from "./database.ts";
import { type Ending, endAttempts } from "./end.ts";
import { recordEvents } from "./events.ts";
import { cancelTask, expireTasks } from "./expire.ts";
import { postgresHosting } from "./hosting.ts";
import { closeLease, type LeaseClock, openLease, renewLeases, rescueExpired } from "./leases.ts";
import { listTasks } from "./list.ts";
import { postgresMetrics } from "./metrics.ts";
import { oldestWaiting } from "./oldest.ts";
import { isInline } from "./payloads.ts";
import { queuePosition } from "./position.ts";
import { pruneDeleted, pruneFinished } from "./prune.ts";
import { readArguments, readHistory, readResult, readTask, readTasks } from "./read.ts";
import { nameOf } from "./rows.ts";
import { migrate } from "./schema.ts";
import type { Session } from "./session.ts";
import { submitTasks } from "./submit.ts";
import { survey } from "./survey.ts";

/** Calls in one batch. */
const MAX_BATCH = 500;

/** Calls of many tasks or large payloads in one transaction. */
const MAX_LARGE_BATCH = 16;

export interface PostgresOptions {
  /** Where the tables stand; made when it does not exist. Default `tessera`. */
  readonly schema?: string;
  /** Connections at most. Default 10: the batches use five, questions the others. */
  readonly connections?: number;
  /** How long the database may take to answer one statement. Default 5,000. */
  readonly timeoutMs?: number;
  /**
   * Whose clock leases expire by. Default `database`, the one clock that all
   * nodes share; `caller` takes the time from each call, for tests that move it.
   */
  readonly leaseClock?: "database" | "caller";
}

type ParametersOf<Name extends keyof Storage> = Storage[Name] extends (
  parameters: infer P,
) => unknown
  ? P
  : never;
type RecordedEvent = ParametersOf<"recordEvents">["events"][number];

export class PostgresStorage implements Storage {
  readonly capabilities = { shared: true, durable: true };
  readonly #url: string;
  readonly #schema: string;
  readonly #timeoutMs: number;
  readonly #connections: number;
  readonly #clock: LeaseClock;
  #db: PostgresDatabase | undefined;
  #folder: CountFolder | undefined;

  readonly #submits = new CallBatcher<NewTask, SubmitOutcome>({
    maxCalls: MAX_BATCH,
    run: (tasks) => this.#moved(submitTasks(this.#open, tasks)),
  });
  readonly #largeSubmits = new CallBatcher<readonly NewTask[], SubmitOutcome[]>({
    maxCalls: MAX_LARGE_BATCH,
    run: (calls) => this.#moved(submitLarge(this.#open, calls)),
  });
  readonly #ends = new CallBatcher<Ending, Task | undefined>({
    maxCalls: MAX_BATCH,
    run: (endings) => this.#moved(endAttempts(this.#open, endings)),
  });
  readonly #largeEnds = new CallBatcher<Ending, Task | undefined>({
    maxCalls: MAX_LARGE_BATCH,
    run: (endings) =>
      this.#moved(this.#open.transaction((session) => endWithBlobs(session, endings))),
  });
  readonly #events = new CallBatcher<RecordedEvent, number | undefined>({
    maxCalls: MAX_BATCH,
    run: (events) => recordEvents(this.#open, events),
  });

  /** Of many deployments at the same time, as a node looks at all of its own. */
  readonly #counts = new CallBatcher<ParametersOf<"countTasks">, QueueCount[]>({
    maxCalls: MAX_BATCH,
    run: (asked) => countTasks(this.#open, asked),
  });

  /** `url` is of the form `postgres://user:password@host:port/database`. */
  constructor(url: string, options: PostgresOptions = {}) {
    const { schema = "tessera", connections = 10, timeoutMs = 5_000, leaseClock } = options;
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
      throw new Error(`${schema} cannot be the name of a schema: use a-z, 0-9 and _`);
    }
    this.#url = url;
    this.#schema = schema;
    this.#connections = connections;
    this.#timeoutMs = timeoutMs;
    this.#clock = leaseClock === "caller" ? (nowMs) => nowMs : () => null;
  }

  async start(): Promise<void> {
    const [url, schema] = [this.#url, this.#schema];
    let db: PostgresDatabase | undefined;
    try {
      db = new PostgresDatabase({
        url,
        schema,
        connections: this.#connections,
        timeoutMs: this.#timeoutMs,
      });
      await migrate(db, schema);
    } catch (err) {
      await db?.[Symbol.asyncDispose]();
      throw refusal(url, err);
    }
    this.#db = db;
    this.#folder = new CountFolder(db);
  }

  async submitTasks({ tasks }: ParametersOf<"submitTasks">): Promise<SubmitOutcome[]> {
    const [task] = tasks;
    return task && tasks.length === 1 && isInline(task.arguments)
      ? [await this.#submits.add(task)]
      : this.#largeSubmits.add(tasks);
  }

  endAttempts({ nowMs, ends }: ParametersOf<"endAttempts">): Promise<(Task | undefined)[]> {
    // All ends of a call go the same way: an attempt may be named twice, and the first comes first.
    const small = ends.every(({ end }) => end.status !== "success" || isInline(end.result));
    const batches = small ? this.#ends : this.#largeEnds;
    return Promise.all(ends.map(({ attempt, end }) => batches.add({ attempt, end, nowMs })));
  }

  recordEvents({ events }: ParametersOf<"recordEvents">): Promise<(number | undefined)[]> {
    return Promise.all(events.map((event) => this.#events.add(event)));
  }

  claimTasks = this.#question((db, parameters: ParametersOf<"claimTasks">) =>
    this.#moved(claimTasks(db, parameters)),
  );
  cancelTask = this.#question((db, parameters: ParametersOf<"cancelTask">) =>
    this.#moved(cancelTask(db, parameters)),
  );
  expireTasks = this.#question((db, parameters: ParametersOf<"expireTasks">) =>
    this.#moved(expireTasks(db, parameters)),
  );
  getTask = this.#question(readTask);
  getArguments = this.#question(readArguments);
  getResult = this.#question(readResult);
  getHistory = this.#question(readHistory);
  requestAbort = this.#question(requestAbort);
  listAborts = this.#question(listAborts);
  listAttempts = this.#question(listAttempts);
  openLease = this.#question((db, parameters: ParametersOf<"openLease">) =>
    openLease(db, this.#clock, parameters),
  );
  renewLeases = this.#question((db, parameters: ParametersOf<"renewLeases">) =>
    renewLeases(db, this.#clock, parameters),
  );
  survey = this.#question((db, parameters: ParametersOf<"survey">) =>
    survey(db, this.#clock, parameters),
  );
  closeLease = this.#question(closeLease);
  rescueExpired = this.#question((db, parameters: ParametersOf<"rescueExpired">) =>
    rescueExpired(db, this.#clock, parameters),
  );
  pruneFinished = this.#question(pruneFinished);
  pruneDeleted = this.#question((db, parameters: ParametersOf<"pruneDeleted">) =>
    this.#moved(pruneDeleted(db, parameters)),
  );
  registerBlobs = this.#question(registerBlobs);
  releaseBlobs = this.#question(releaseBlobs);
  takeDeadBlobs = this.#question(takeDeadBlobs);
  forgetBlobs = this.#question(forgetBlobs);
  listTasks = this.#question(listTasks);
  queuePosition = this.#question(queuePosition);
  countTasks = (asked: ParametersOf<"countTasks">) => this.#counts.add(asked);
  countDue = this.#question(countDue);
  oldestWaiting = this.#question(oldestWaiting);
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
      ...[this.#submits, this.#largeSubmits, this.#ends, this.#largeEnds],
      ...[this.#events, this.#counts],
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

  /** A method of the port that asks the database directly. */
  #question<Parameters, Answer>(
    ask: (db: PostgresDatabase, parameters: Parameters) => Promise<Answer>,
  ): (parameters: Parameters) => Promise<Answer> {
    return async (parameters) => ask(this.#open, parameters);
  }

  /** After what may have moved tasks from one count to another. */
  async #moved<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const answered = await answer;
    this.#folder?.written();
    return answered;
  }
}

/** All calls in one transaction: each is stored as a whole. */
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

/** A task whose files are gone is not stored, unless it already was. */
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

/** An attempt whose result is gone goes back to the queue. */
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
      ? { ...ending, end: { status: "queued", runAtMs: nowMs, failed: false } }
      : ending;
  });
  return endAttempts(session, recorded);
}
