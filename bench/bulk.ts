/**
 * Benchmark of changes of many tasks: what it costs to delete, cancel, retry and prune each of them,
 * and how long a submit takes meanwhile. It runs the storage alone, as bulk.ts of the API and the
 * pruner ask it, from `src/` and, to compare, from the `src/` of another revision. The two alternate,
 * so that a machine that is busy is busy for both.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type pg from "pg";
import { MAX_CANCELS_AT_ONCE, MAX_DELETIONS_AT_ONCE } from "../src/api/task/bulk.ts";
import type { TaskSearchQuery } from "../src/storage/listing.ts";
import type { Storage, TaskKeyPage } from "../src/storage/storage.ts";
import type { Backends } from "./backends.ts";
import { percentiles } from "./load.ts";
import { rotate } from "./rotate.ts";
import { backendMicros, checkOut, ROOT, walOf } from "./statements.ts";
import { DEPLOYMENT, StoredTasks } from "./stored-tasks.ts";
import { figure, median, table } from "./table.ts";

interface Contender {
  readonly tasks: StoredTasks;
  /** Of Postgres: the name of the database. */
  readonly database: string;
}

interface BulkOptions {
  readonly database: string;
  /** A git revision that is measured in the same rounds. Default: none. */
  readonly against: string | undefined;
  /** Tasks of each round. */
  readonly tasks: number;
  readonly rounds: number;
}

interface Cost {
  readonly micros: number;
  readonly walBytes: number;
  readonly perSecond: number;
  /** How long each submit took that was made meanwhile. */
  readonly submitsMs: readonly number[];
}

const FILL_BATCH = 1_000;
/** Tasks that are pruned at once, as the pruner does. */
const PRUNED = 1_000;
const SUBMIT_INTERVAL_MS = 10;
const ENDED = ["queued", "success", "failure", "cancelled"] as const;

interface Kind {
  readonly title: string;
  /** Stores the tasks. */
  fill(tasks: StoredTasks, count: number): Promise<void>;
  /** Changes some, and answers how many; none when all are changed. */
  begin(storage: Storage): () => Promise<number>;
}

const KINDS: readonly Kind[] = [
  { title: "delete queued", fill: queued, begin: deleting },
  { title: "delete ended", fill: ended, begin: deleting },
  {
    title: "cancel queued",
    fill: queued,
    begin: (storage) =>
      searching(storage, ["queued"], MAX_CANCELS_AT_ONCE, (taskIds) =>
        Promise.all(
          taskIds.map((taskId) =>
            storage.cancelTask({ deploymentId: DEPLOYMENT, taskId, nowMs: Date.now() }),
          ),
        ),
      ),
  },
  {
    title: "prune",
    fill: (tasks, count) => ended(tasks, count, 0),
    begin: (storage) => () => storage.pruneFinished({ nowMs: Date.now(), limit: PRUNED }),
  },
];

export async function benchBulk(
  backends: Backends,
  { database, against, tasks, rounds }: BulkOptions,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const trees = new Map([["these", ROOT]]);
  if (against !== undefined) {
    trees.set(against, checkOut(against, join(backends.folder, "against"), stack));
  }
  const postgres = database === "postgres" ? await backends.postgres() : undefined;
  const contenders: Contender[] = [];
  for (const [at, [title, root]] of [...trees].entries()) {
    const name = `bulk_${at}`;
    const url = await (postgres?.createDatabase(name) ?? join(backends.folder, `${name}.db`));
    const storage = await storageOf(root, database, url);
    contenders.push({ tasks: stack.use(await StoredTasks.start(title, storage)), database: name });
  }
  const client = postgres?.client;
  for (const kind of KINDS) {
    const costs = new Map(contenders.map((each) => [each, [] as Cost[]]));
    for (let round = 0; round <= rounds; round += 1) {
      for (const contender of rotate(contenders, round)) {
        await kind.fill(contender.tasks, tasks);
        const cost = await measure(contender, kind, client);
        await clear(contender.tasks.storage, tasks);
        if (round > 0) {
          costs.get(contender)?.push(cost);
        }
      }
    }
    write(
      `\n${kind.title}, ${tasks} at a time: medians of ${rounds} rounds after one to warm up\n\n`,
    );
    write(costTable(costs));
  }
}

function costTable(costs: ReadonlyMap<Contender, readonly Cost[]>): string {
  const [own = []] = costs.values();
  const rows = [...costs].map(([{ tasks }, rounds]) => {
    const submits = percentiles(rounds.flatMap(({ submitsMs }) => submitsMs));
    return [
      tasks.title,
      figure(median(rounds.map(({ micros }) => micros)), 1),
      figure(median(rounds.map(({ micros }, at) => (own[at]?.micros ?? 0) / micros)), 2),
      figure(median(rounds.map(({ walBytes }) => walBytes))),
      figure(median(rounds.map(({ perSecond }) => perSecond))),
      figure(submits.p50, 1),
      figure(submits.p99, 1),
    ];
  });
  const head = ["", "CPU µs", "of it, the first", "WAL bytes", "tasks/s", "submit p50 ms", "p99"];
  return table(head, rows);
}

async function measure(
  { tasks, database }: Contender,
  kind: Kind,
  client: pg.Client | undefined,
): Promise<Cost> {
  const next = kind.begin(tasks.storage);
  const cpu = async () => {
    const { user, system } = process.cpuUsage();
    return user + system + (client ? await backendMicros(client, database) : 0);
  };
  const wal = async () => (client ? await walOf(client) : Number.NaN);
  const [cpuBefore, walBefore] = [await cpu(), await wal()];
  const submits = submitting(tasks);
  const begunMs = performance.now();
  let changed = 0;
  for (;;) {
    const count = await next();
    if (count === 0) {
      break;
    }
    changed += count;
  }
  const tookMs = performance.now() - begunMs;
  const submitsMs = await submits.end();
  return {
    micros: ((await cpu()) - cpuBefore) / changed,
    walBytes: ((await wal()) - walBefore) / changed,
    perSecond: (changed / tookMs) * 1_000,
    submitsMs,
  };
}

/** Submits a task at a time, at an interval, until it is ended; answers how long each took. */
function submitting(tasks: StoredTasks) {
  const tookMs: number[] = [];
  let isOver = false;
  const work = (async () => {
    while (!isOver) {
      const begunMs = performance.now();
      await tasks.queue(1);
      tookMs.push(performance.now() - begunMs);
      await sleep(SUBMIT_INTERVAL_MS);
    }
  })();
  return {
    async end() {
      isOver = true;
      await work;
      return tookMs;
    },
  };
}

async function queued(tasks: StoredTasks, count: number): Promise<void> {
  for (let done = 0; done < count; done += FILL_BATCH) {
    await tasks.queue(FILL_BATCH);
  }
}

async function ended(tasks: StoredTasks, count: number, keptMs?: number): Promise<void> {
  for (let done = 0; done < count; done += FILL_BATCH) {
    await tasks.step("submit, end", FILL_BATCH, keptMs);
  }
  await tasks.end();
}

function deleting(storage: Storage): () => Promise<number> {
  return searching(storage, ENDED, MAX_DELETIONS_AT_ONCE, (taskIds) =>
    storage.deleteTasks({ deploymentId: DEPLOYMENT, taskIds, nowMs: Date.now() }),
  );
}

/** Changes the tasks that a search finds, page by page, newest first. */
function searching(
  storage: Storage,
  statuses: NonNullable<TaskSearchQuery["statuses"]>,
  limit: number,
  change: (taskIds: readonly string[]) => Promise<unknown>,
): () => Promise<number> {
  let before: string | undefined;
  let isOver = false;
  return async () => {
    if (isOver) {
      return 0;
    }
    const page = await keysOf(storage, {
      deploymentIds: [DEPLOYMENT],
      ...{ statuses, limit },
      ...(before !== undefined && { before }),
    });
    before = page.nextBefore;
    isOver = before === undefined;
    await change(page.keys.map(({ taskId }) => taskId));
    return page.keys.length;
  };
}

/** Keys by themselves; of a revision that cannot, with their tasks. */
async function keysOf(storage: Storage, search: TaskSearchQuery): Promise<TaskKeyPage> {
  if ("searchKeys" in storage) {
    return storage.searchKeys(search);
  }
  const { tasks, nextBefore } = await (storage as Storage).searchTasks(search);
  return { keys: tasks, nextBefore };
}

/** Deletes what is left of a round, and forgets that it was there. */
async function clear(storage: Storage, tasks: number): Promise<void> {
  const next = deleting(storage);
  while ((await next()) > 0) {}
  const nowMs = Date.now() * 2;
  for (let done = -tasks; done <= tasks; done += PRUNED) {
    await storage.pruneFinished({ nowMs, limit: PRUNED });
  }
}

async function storageOf(root: string, database: string, url: string): Promise<Storage> {
  const file = pathToFileURL(join(root, `src/storage/${database}/storage.ts`)).href;
  const { SqliteStorage, PostgresStorage } = await import(file);
  return database === "sqlite" ? new SqliteStorage(url) : new PostgresStorage(url);
}
