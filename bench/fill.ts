/**
 * The fill test: whether a task costs as much beside a million others as beside a thousand. Of two
 * storages one is filled, level by level, with as many finished tasks as queued ones; the other
 * keeps the first level. Rounds alternate between the two, so that a machine that is busy is busy
 * for both, and on Postgres a vacuum of all tables runs all the while. What is measured is removed
 * again by pruning, which is part of what is measured.
 */
import pg from "pg";
import type { Storage } from "../src/storage/storage.ts";
import { rotate } from "./rotate.ts";
import { backendMicros } from "./statements.ts";
import { DEPLOYMENT, StoredTasks, WAYS } from "./stored-tasks.ts";
import { figure, median, table } from "./table.ts";

/** A storage to measure. */
interface Filled {
  readonly storage: Storage;
  /** Of Postgres: the database, and a client that is connected to another one. */
  readonly server?: { readonly url: string; readonly client: pg.Client };
}

interface FillOptions {
  readonly storages: { readonly little: Filled; readonly full: Filled };
  /** The last level: how many finished, and how many queued. */
  readonly tasks: number;
  readonly rounds: number;
}

const FIRST_LEVEL = 1_000;
const GROWTH = 10;
/** Tasks stored at once while the storage is filled. */
const FILL_BATCH = 500;
const BATCH = 16;
const STEPS = 100;
const VACUUM_PAUSE_MS = 1_000;

/** What is done `STEPS` times a round, by its title; each step counts as so many operations. */
const WORK: Readonly<
  Record<string, { operations: number; step(tasks: StoredTasks): Promise<unknown> }>
> = {
  ...Object.fromEntries(
    WAYS.map((way) => [
      `${way}, prune`,
      {
        operations: BATCH,
        async step(tasks) {
          await tasks.step(way, BATCH, 0);
          await tasks.storage.pruneFinished({ nowMs: Date.now(), limit: 2 * BATCH });
        },
      },
    ]),
  ),
  "page of 50": {
    operations: 1,
    step: ({ storage }) => storage.listTasks({ deploymentId: DEPLOYMENT, limit: 50 }),
  },
  "counts, next delayed": {
    operations: 1,
    step: ({ storage }) =>
      Promise.all([
        storage.countTasks({ deploymentId: DEPLOYMENT }),
        storage.nextRunAt({ deploymentId: DEPLOYMENT, nowMs: Date.now() }),
      ]),
  },
};

export async function benchFill(
  { storages: { little, full }, tasks, rounds }: FillOptions,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const both = new Map([
    [stack.use(await StoredTasks.start("little", little.storage)), little],
    [stack.use(await StoredTasks.start("full", full.storage)), full],
  ]);
  stack.use(vacuuming([little, full]));
  let level = FIRST_LEVEL;
  for (const contender of both.keys()) {
    await fill(contender, level);
  }
  for (;;) {
    write(
      `\n${level} finished and ${level} queued tasks, beside ${FIRST_LEVEL} of each: CPU µs for each operation, medians of ${rounds} rounds after one to warm up\n\n`,
    );
    const rows: string[][] = [];
    for (const [title, work] of Object.entries(WORK)) {
      rows.push([title, ...(await compare(both, work, rounds))]);
    }
    write(table(["", `${FIRST_LEVEL}`, `${level}`, "ratio", "from–to"], rows));
    const next = Math.min(tasks, level * GROWTH);
    if (next <= level) {
      return;
    }
    for (const contender of [...both.keys()].slice(1)) {
      await fill(contender, next - level);
    }
    level = next;
  }
}

/** Adds so many finished tasks, and so many queued ones. */
async function fill(contender: StoredTasks, count: number): Promise<void> {
  for (let done = 0; done < count; done += FILL_BATCH) {
    const size = Math.min(FILL_BATCH, count - done);
    await contender.step("submit, end", size);
    await contender.queue(size);
  }
  await contender.end();
}

/** The costs of both, and of the second in terms of the first. */
async function compare(
  both: ReadonlyMap<StoredTasks, Filled>,
  { operations, step }: (typeof WORK)[string],
  rounds: number,
): Promise<string[]> {
  const costs = new Map([...both.keys()].map((each) => [each, [] as number[]]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [tasks, filled] of rotate([...both], round)) {
      const before = await cpuMicros(filled);
      for (let number = 0; number < STEPS; number += 1) {
        await step(tasks);
      }
      await tasks.end();
      const cost = ((await cpuMicros(filled)) - before) / STEPS / operations;
      if (round > 0) {
        costs.get(tasks)?.push(cost);
      }
    }
  }
  const [little = [], full = []] = costs.values();
  const ratios = full.map((cost, round) => cost / (little[round] ?? Number.NaN));
  return [
    figure(median(little), 1),
    figure(median(full), 1),
    figure(median(ratios), 2),
    `${figure(Math.min(...ratios), 2)}–${figure(Math.max(...ratios), 2)}`,
  ];
}

/** CPU time of this process, with a storing thread, and of the backends of a Postgres. */
async function cpuMicros({ server }: Filled): Promise<number> {
  const { user, system } = process.cpuUsage();
  const backends =
    server === undefined
      ? 0
      : await backendMicros(server.client, new URL(server.url).pathname.slice(1));
  return user + system + backends;
}

/** Vacuums the databases, one after the other, again and again, until it is disposed of. */
function vacuuming(filled: readonly Filled[]): AsyncDisposable {
  const ended = new AbortController();
  const work = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      for (const { server } of filled) {
        if (server) {
          const client = new pg.Client({
            connectionString: server.url,
            application_name: "vacuum",
          });
          await client.connect();
          await client.query("VACUUM").finally(() => client.end());
        }
      }
      await new Promise((resolve) => setTimeout(resolve, VACUUM_PAUSE_MS));
    }
  };
  const done = work();
  return {
    async [Symbol.asyncDispose]() {
      ended.abort();
      await done;
    },
  };
}
