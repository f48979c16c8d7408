/**
 * The entry point of `npm run bench`; see bench/README.md. The first argument
 * selects the benchmark; everything else is a flag.
 */
import { join } from "node:path";
import { USAGE_EXIT_CODE, UsageError } from "../scripts/usage.ts";
import { PostgresStorage } from "../src/storage/postgres/storage.ts";
import { SqliteStorage } from "../src/storage/sqlite/storage.ts";
import { Backends } from "./backends.ts";
import { benchBulk } from "./bulk.ts";
import { benchCells } from "./cells.ts";
import { benchFill } from "./fill.ts";
import { benchIdle } from "./idle.ts";
import { benchLifecycles } from "./lifecycles.ts";
import { benchMemory } from "./memory.ts";
import { benchMetrics } from "./metrics.ts";
import { benchNodes } from "./nodes.ts";
import { type BenchOptions, readOptions, USAGE } from "./options.ts";
import type { PlatformsPlan } from "./platforms.ts";
import { benchPython } from "./python/compare.ts";
import { benchMounted } from "./python/mounted.ts";
import { benchRate } from "./rate.ts";
import { benchRemote } from "./remote.ts";
import { benchScrapes } from "./scrapes.ts";
import { benchSleeping } from "./sleeping.ts";
import { benchStatements } from "./statements.ts";
import { machine } from "./table.ts";
import { benchTokens } from "./tokens.ts";

const { figures, peers, connections, database, against, quick, number } = options();

/** Parses the options; exits on a usage error or for help. */
function options(): BenchOptions {
  try {
    const read = readOptions();
    if (read !== undefined) {
      return read;
    }
    process.stdout.write(USAGE);
    process.exit(0);
  } catch (err) {
    if (!(err instanceof UsageError)) {
      throw err;
    }
    process.stderr.write(`bench: ${err.message} (npm run bench -- --help shows the options)\n`);
    process.exit(USAGE_EXIT_CODE);
  }
}

const write = (text: string): void => void process.stdout.write(text);
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));

await using backends = new Backends();

/** Creates a fresh database on the selected backend. */
async function fresh(name: string): Promise<string> {
  return database === "sqlite"
    ? join(backends.folder, `${name}.db`)
    : (await backends.postgres()).createDatabase(name);
}

/** The load of platforms that differ in what it is spread over. */
function spreadPlan(perSecond: number): PlatformsPlan {
  const [rounds, seconds] = [number("rounds", 5, 1), number("seconds", 5, 2)];
  return { rounds, seconds, perSecond: quick ? perSecond / 5 : perSecond };
}

write(`${machine()}\n`);
for (const name of figures) {
  switch (name) {
    case "lifecycles":
      await benchLifecycles(
        backends,
        {
          peers,
          connections,
          rounds: number("rounds", 5, 1),
          seconds: number("seconds", 4, 2),
        },
        write,
      );
      break;
    case "rate":
      await benchRate(
        { database: await fresh("rate"), perSecond: 1_000, seconds: number("seconds", 15, 5) },
        write,
      );
      break;
    case "fill": {
      const tasks = number("tasks", 100_000, 10_000);
      const filled = async (name: string) => {
        const url = await fresh(name);
        if (database === "sqlite") {
          return { storage: new SqliteStorage(url) };
        }
        const { client } = await backends.postgres();
        return { storage: new PostgresStorage(url), server: { url, client } };
      };
      const storages = { little: await filled("fill_little"), full: await filled("fill_full") };
      await benchFill({ storages, tasks, rounds: number("rounds", 5, 1) }, write);
      break;
    }
    case "bulk":
      await benchBulk(
        backends,
        {
          ...{ database, against },
          tasks: number("tasks", 20_000, 2_000),
          rounds: number("rounds", 5, 1),
        },
        write,
      );
      break;
    case "memory":
      await benchMemory(
        { database: await fresh("memory"), tasks: number("tasks", 200_000, 40_000) },
        write,
      );
      break;
    case "idle": {
      const url = await fresh("idle");
      const client = database === "postgres" && (await backends.postgres()).client;
      const idle = { ...(client && { client }), seconds: number("seconds", 60, 10) };
      await benchIdle({ ...idle, database: url }, write);
      await benchIdle(
        {
          ...idle,
          database: await fresh("idle_platform"),
          platform: { deployments: 10, data: join(backends.folder, "platform") },
        },
        write,
      );
      break;
    }
    case "sleeping":
      await benchSleeping(
        {
          database: await fresh("sleeping"),
          data: join(backends.folder, "sleeping"),
          deployments: quick ? 50 : 1_000,
          seconds: number("seconds", 20, 5),
        },
        write,
      );
      break;
    case "tokens":
      await benchTokens(
        {
          database: await fresh("tokens"),
          folder: backends.folder,
          calls: quick ? 50_000 : 500_000,
          deletions: quick ? 20 : 200,
        },
        write,
      );
      break;
    case "python":
      await benchPython(
        {
          folder: backends.folder,
          rounds: number("rounds", 3, 1),
          seconds: number("seconds", 4, 2),
        },
        write,
      );
      break;
    case "mounted":
      await benchMounted(
        { rounds: number("rounds", 5, 2), seconds: number("seconds", 3, 1) },
        write,
      );
      break;
    case "metrics":
      await benchMetrics(
        {
          calls: quick ? 100_000 : 1_000_000,
          series: quick ? 10_000 : 100_000,
          rounds: number("rounds", 5, 3),
        },
        write,
      );
      break;
    case "remote":
      await benchRemote(
        {
          folder: backends.folder,
          fresh,
          rounds: number("rounds", 3, 1),
          seconds: number("seconds", 5, 2),
          aborts: quick ? 20 : 300,
          idleSeconds: quick ? 10 : 60,
        },
        write,
      );
      break;
    case "statements":
      await benchStatements(
        backends,
        { rounds: number("rounds", 5, 1), batches: quick ? 40 : 120, against },
        write,
      );
      break;
    case "cells":
      await benchCells(backends, spreadPlan(500), write);
      break;
    case "nodes":
      await benchNodes(backends, spreadPlan(200), write);
      break;
    case "scrapes":
      await benchScrapes(
        {
          database: await fresh("scrapes"),
          series: quick ? 10_000 : 100_000,
          rounds: number("rounds", 3, 1),
          seconds: number("seconds", 5, 2),
        },
        write,
      );
  }
}
