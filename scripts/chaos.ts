/**
 * `npm run chaos`: kills nodes and workers under load and verifies that no
 * acknowledged task is lost or finishes twice. Prints figures at the end; the exit
 * code is 1 if a guarantee was violated.
 */
import { cellsDatabase } from "../test/chaos/cells.ts";
import { postgresDatabase } from "../test/chaos/postgres.ts";
import { Random } from "../test/chaos/random.ts";
import { type ChaosDatabase, chaos, type Figures } from "../test/chaos/run.ts";
import { sqliteDatabase } from "../test/chaos/sqlite.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run chaos -- [options]

Kills nodes and workers under load, and verifies that no acknowledged task is lost
or finishes twice. Prints figures at the end; the exit code is 1 if a guarantee was
violated.

Options:
  --on <name>     sqlite, postgres or cells (default: one after the other, and with
                  --short no cells)
  --launcher      on sqlite: the workers run on machines that a launcher starts, and
                  launcher and machines are killed, too
  --kills <n>     how many processes to kill on each (default: 200, with --short 25)
  --seconds <n>   begin no new round after this time (default: 3600, with --short 60)
  --seed <n>      repeats the choices of an earlier run (default: random)
  --short         for every change: about two minutes in all
  --help          shows this help

Example:
  $ npm run chaos -- --on postgres --kills 50 --seed 7
`;

const KILLS_PER_ROUND = 25;

const DATABASES: Readonly<Record<string, (random: Random) => Promise<ChaosDatabase>>> = {
  sqlite: async () => sqliteDatabase(),
  postgres: postgresDatabase,
  cells: cellsDatabase,
};
/** Cells make three servers and a platform, which takes too long for every change. */
const SHORT = ["sqlite", "postgres"];

interface Options {
  readonly on: readonly string[];
  readonly kills: number;
  readonly seconds: number;
  readonly seed: number;
  readonly launcher: boolean;
}

/** Undefined if help was requested. Throws a `UsageError`. */
function readOptions(): Options | undefined {
  const { values } = readArguments({
    options: {
      on: { type: "string" },
      kills: { type: "string" },
      seconds: { type: "string" },
      seed: { type: "string" },
      launcher: { type: "boolean", default: false },
      short: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    return undefined;
  }
  const number = (name: "kills" | "seconds" | "seed", otherwise: number): number => {
    const text = values[name] ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) {
      throw new UsageError(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
    }
    return Number(text);
  };
  if (values.on !== undefined && !Object.hasOwn(DATABASES, values.on)) {
    const names = Object.keys(DATABASES)
      .join(", ")
      .replace(/, (\w+)$/, " or $1");
    throw new UsageError(`--on must be ${names}, not ${JSON.stringify(values.on)}`);
  }
  const { launcher, on = launcher ? "sqlite" : undefined } = values;
  if (launcher && on !== "sqlite") {
    throw new UsageError("--launcher goes with --on sqlite");
  }
  return {
    launcher,
    on: on === undefined ? (values.short ? SHORT : Object.keys(DATABASES)) : [on],
    kills: number("kills", values.short ? 25 : 200),
    seconds: number("seconds", values.short ? 60 : 3_600),
    seed: number("seed", Math.floor(Math.random() * 1_000_000)),
  };
}

type Row = readonly [string, string | number];

function table({ name, rows }: ChaosDatabase, seed: number, figures: Figures): string {
  const { killed, finished, otherFaults } = figures;
  const kinds = Object.entries(killed).map(([what, count]) => `${count} ${what}`);
  const ends = Object.entries(finished).map(([status, count]) => `${count} ${status}`);
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
  const shown: readonly Row[] = [
    ["database", name],
    ["seed", seed],
    ["rounds", `${figures.rounds} in ${figures.seconds.toFixed(0)} s`],
    ["kills", `${sum(killed)} (${kinds.join(", ")})`],
    ...(otherFaults > 0 ? [["other faults", otherFaults] as const] : []),
    ["submitted", figures.submitted],
    ["acknowledged", figures.acknowledged],
    ["finished", ends.join(", ")],
    ["lost", figures.lost],
    ["finished twice", figures.endedTwice],
    ["otherwise wrong", figures.wrong],
    ["slowest recovery of service", seconds(figures.slowestServiceMs)],
    ["slowest restart of a task", seconds(figures.slowestRestartMs)],
    ...(rows?.() ?? []),
  ];
  return shown.map(([label, value]) => `${label.padEnd(28)}${value}\n`).join("");
}

function sum(counts: Figures["killed"]): number {
  return Object.values(counts).reduce((total, one) => total + one, 0);
}

/** True if no guarantee was violated. */
async function runOn(database: ChaosDatabase, options: Options): Promise<boolean> {
  await using _database = database;
  const { name } = database;
  let told = 0;
  const figures = await chaos({
    ...options,
    database,
    killsPerRound: KILLS_PER_ROUND,
    onRound: ({ rounds, killed, acknowledged, violations }) => {
      process.stdout.write(
        `${name}: round ${rounds}, ${sum(killed)} kills, ${acknowledged} tasks, ${violations.length} violations\n`,
      );
      // At once: a later round may fail before the end.
      for (const line of violations.slice(told)) {
        process.stdout.write(`  ${line}\n`);
      }
      told = violations.length;
    },
    onSlow: (fault, afterMs) => {
      const seconds = (afterMs / 1_000).toFixed(0);
      process.stdout.write(`${name}: after ${fault}, no task ended for ${seconds} s\n`);
    },
  });
  process.stdout.write(`\n${table(database, options.seed, figures)}\n`);
  return figures.violations.length === 0;
}

/** Resolves with the exit code. */
async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  let kept = true;
  for (const name of options.on) {
    const database = await DATABASES[name]?.(new Random(options.seed + 1));
    if (database && !(await runOn(database, options))) {
      kept = false;
    }
  }
  return kept ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(1));
}
try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  const message = err instanceof Error ? err.message : String(err);
  const hint = isUsage ? " (npm run chaos -- --help shows the options)" : "";
  process.stderr.write(`chaos: ${message}${hint}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
