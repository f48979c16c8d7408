/**
 * `npm run restarts`: kills nodes, and measures how long the tasks that they ran wait for their
 * next attempt, with the processor of the nodes starved.
 */
import { postgresDatabase } from "../test/chaos/postgres.ts";
import { Random } from "../test/chaos/random.ts";
import { restarts } from "../test/chaos/restarts.ts";
import { sqliteDatabase } from "../test/chaos/sqlite.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run restarts -- [options]

Kills nodes that run tasks and starts them again at once, all of them on one core, and
measures how long the tasks wait for their next attempt. Linux only (it uses taskset).

Options:
  --on <name>   sqlite (one node) or postgres (two nodes; default: one after the other)
  --kills <n>   how many nodes to kill on each (default: 10)
  --loops <n>   busy loops on the nodes' core, of the same priority (default: 0)
  --seed <n>    repeats the pauses of an earlier run (default: random)
  --help        shows this help
`;

const DATABASES = {
  sqlite: async () => sqliteDatabase(),
  postgres: async () => postgresDatabase(new Random(0)),
};

type DatabaseName = keyof typeof DATABASES;

interface Options {
  readonly on: readonly DatabaseName[];
  readonly kills: number;
  readonly loops: number;
  readonly seed: number;
}

/** Undefined if help was requested. Throws a `UsageError`. */
function readOptions(): Options | undefined {
  const { values } = readArguments({
    options: {
      on: { type: "string" },
      kills: { type: "string" },
      loops: { type: "string" },
      seed: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    return undefined;
  }
  const number = (name: "kills" | "loops" | "seed", otherwise: number): number => {
    const text = values[name] ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) {
      throw new UsageError(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
    }
    return Number(text);
  };
  const { on } = values;
  if (on !== undefined && on !== "sqlite" && on !== "postgres") {
    throw new UsageError(`--on must be sqlite or postgres, not ${JSON.stringify(on)}`);
  }
  return {
    on: on === undefined ? ["sqlite", "postgres"] : [on],
    kills: number("kills", 10),
    loops: number("loops", 0),
    seed: number("seed", Math.floor(Math.random() * 1_000_000)),
  };
}

const seconds = (ms: number | undefined): string => `${((ms ?? 0) / 1_000).toFixed(1)} s`;

function summary(timesMs: readonly number[]): string {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const at = (share: number): string => seconds(sorted[Math.ceil(sorted.length * share) - 1]);
  return `median ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)}`;
}

async function runOn(on: DatabaseName, options: Options): Promise<void> {
  await using database = await DATABASES[on]();
  const readyMs: number[] = [];
  const found = await restarts({
    ...options,
    database,
    onKill: (timesMs, ms) => {
      readyMs.push(ms);
      const slowest = seconds(Math.max(...timesMs));
      process.stdout.write(`${on}: tasks after ${slowest}, node ready after ${seconds(ms)}\n`);
    },
  });
  const { kills, loops, seed } = options;
  process.stdout.write(`
${on}, ${kills} kills, ${loops} busy loops, seed ${seed}
restart of a task   ${summary(found)}
node ready again    ${summary(readyMs)}
`);
}

/** Resolves with the exit code. */
async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  for (const on of options.on) {
    await runOn(on, options);
  }
  return 0;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(1));
}
try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  const message = err instanceof Error ? err.message : String(err);
  const hint = isUsage ? " (npm run restarts -- --help shows the options)" : "";
  process.stderr.write(`restarts: ${message}${hint}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
