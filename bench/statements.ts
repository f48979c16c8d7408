/**
 * Benchmark of the statements that move tasks through Postgres: what a submit, a claim and an end
 * cost the database and the node, by the number of calls that share a batch. It runs the storage
 * alone, from `src/` and, to compare, from the `src/` of another revision; beside them the floor,
 * which appends rows to a table without a key and promises nothing but that they are on disk.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { connectionConfig } from "../src/storage/postgres/connection.ts";
import type { PostgresStorage } from "../src/storage/postgres/storage.ts";
import { createIdSource } from "../src/tasks/id.ts";
import { CountingProxy } from "../test/storage/postgres/counting-proxy.ts";
import type { Backends } from "./backends.ts";
import { rotate } from "./rotate.ts";
import { PAYLOAD, StoredTasks, WAYS, type Way } from "./stored-tasks.ts";
import { figure, median, table } from "./table.ts";

export interface StatementsOptions {
  readonly rounds: number;
  /** Batches of one turn, of which the largest have fewer. */
  readonly batches: number;
  /** A git revision, whose statements are measured in the same rounds. Default: none. */
  readonly against: string | undefined;
}

const BATCH_SIZES = [1, 16, 64];
export const ROOT = join(import.meta.dirname, "..");
const newId = createIdSource();

/** Something that takes tasks; a step is one batch of each kind, all under way together. */
interface Contender extends AsyncDisposable {
  readonly title: string;
  step(way: Way, size: number): Promise<void>;
}

interface Cost {
  readonly backendMicros: number;
  readonly clientMicros: number;
  readonly walBytes: number;
}

export async function benchStatements(
  backends: Backends,
  { rounds, batches, against }: StatementsOptions,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { client, createDatabase } = await backends.postgres();
  const trees = new Map([["these statements", ROOT]]);
  if (against !== undefined) {
    trees.set(against, checkOut(against, join(backends.folder, "against"), stack));
  }
  const databases = new Map<Contender, string>();
  const requests = new Map<string, number>();
  for (const [index, [title, root]] of [...trees].entries()) {
    const name = `statements_${index}`;
    const url = await createDatabase(name);
    const { PostgresStorage: Storage } = (await import(
      pathToFileURL(join(root, "src/storage/postgres/storage.ts")).href
    )) as { PostgresStorage: typeof PostgresStorage };
    databases.set(stack.use(await StoredTasks.start(title, new Storage(url))), name);
    await using proxy = new CountingProxy(new URL(url));
    const through = await StoredTasks.start(title, new Storage(await proxy.listen(url)));
    await using counted = through;
    for (const way of WAYS) {
      for (const size of BATCH_SIZES) {
        await run(counted, way, size, 4);
        const before = proxy.requests;
        await run(counted, way, size, 20);
        requests.set(`${title}/${way}/${size}`, (proxy.requests - before) / 20 / size);
      }
    }
  }
  const url = await createDatabase("statements_floor");
  databases.set(stack.use(await Floor.start(url)), "statements_floor");
  for (const way of WAYS) {
    for (const size of BATCH_SIZES) {
      const costs = new Map([...databases.keys()].map((each) => [each, [] as Cost[]]));
      for (let round = 0; round <= rounds; round += 1) {
        for (const [contender, database] of rotate([...databases], round)) {
          const steps = Math.ceil(size > 16 ? batches / 2 : batches);
          const cost = await measure(client, database, steps * size, () =>
            run(contender, way, size, steps),
          );
          if (round > 0) {
            costs.get(contender)?.push(cost);
          }
        }
      }
      write(
        `\n${way}, batches of ${size}: for each task, medians of ${rounds} rounds after one to warm up\n\n`,
      );
      write(costTable(costs, requests, `${way}/${size}`));
    }
  }
}

async function run(contender: Contender, way: Way, size: number, steps: number): Promise<void> {
  for (let step = 0; step < steps; step += 1) {
    await contender.step(way, size);
  }
}

function costTable(
  costs: ReadonlyMap<Contender, readonly Cost[]>,
  requests: ReadonlyMap<string, number>,
  what: string,
): string {
  const [own] = costs.values();
  const rows = [...costs].map(([{ title }, rounds]) => [
    title,
    figure(median(rounds.map(({ backendMicros }) => backendMicros)), 1),
    figure(
      median(
        rounds.map(
          ({ backendMicros }, round) => (own?.[round]?.backendMicros ?? 0) / backendMicros,
        ),
      ),
      2,
    ),
    figure(median(rounds.map(({ clientMicros }) => clientMicros)), 1),
    figure(median(rounds.map(({ walBytes }) => walBytes))),
    figure(requests.get(`${title}/${what}`) ?? Number.NaN, 2),
  ]);
  return table(
    ["", "backend CPU µs", "of it, these", "client CPU µs", "WAL bytes", "round trips"],
    rows,
  );
}

async function measure(
  client: pg.Client,
  database: string,
  tasks: number,
  work: () => Promise<void>,
): Promise<Cost> {
  const [walBefore, backendsBefore] = [await walOf(client), await backendMicros(client, database)];
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return {
    clientMicros: (user + system) / tasks,
    backendMicros: ((await backendMicros(client, database)) - backendsBefore) / tasks,
    walBytes: ((await walOf(client)) - walBefore) / tasks,
  };
}

export async function walOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS bytes");
  return Number(rows[0]?.bytes);
}

/**
 * CPU time of the processes that serve the connections to a database, without the server's own and
 * those that only vacuum.
 */
export async function backendMicros(client: pg.Client, database: string): Promise<number> {
  const { rows } = await client.query(
    "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' AND application_name <> 'vacuum'",
    [database],
  );
  const times = rows.map(({ pid }) =>
    Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]),
  );
  return times.reduce((sum, each) => sum + each, 0) / 1_000;
}

/** Checks a revision out, to import what it has in `src/`; answers its folder. */
export function checkOut(revision: string, folder: string, stack: AsyncDisposableStack): string {
  const git = (...args: string[]) => execFileSync("git", ["-C", ROOT, ...args], { stdio: "pipe" });
  git("worktree", "add", "--detach", folder, revision);
  stack.defer(() => void git("worktree", "remove", "--force", folder));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

const APPEND = `INSERT INTO appended (task_id, at_ms, body)
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])`;

/** Two rows for each task, in two transactions, as if nothing was ever read or sent twice. */
class Floor implements Contender {
  readonly title = "append only: the floor";
  readonly #pool: pg.Pool;

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  static async start(url: string): Promise<Floor> {
    const options = { url, schema: "public", connections: 2, timeoutMs: 5_000 };
    const pool = new pg.Pool(connectionConfig(options));
    await pool.query("CREATE TABLE appended (task_id text, at_ms bigint, body text)");
    return new Floor(pool);
  }

  async step(_: Way, size: number): Promise<void> {
    const nowMs = Date.now();
    await Promise.all([this.#append(nowMs, size), this.#append(nowMs, size)]);
  }

  async #append(nowMs: number, size: number): Promise<void> {
    const of = <Value>(make: () => Value): Value[] => Array.from({ length: size }, make);
    const values = [of(newId), of(() => nowMs), of(() => PAYLOAD.json)];
    await this.#pool.query({ name: "append", text: APPEND, values });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool.end();
  }
}
