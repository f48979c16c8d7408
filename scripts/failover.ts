/**
 * `npm run failover`: kills the primary of two Postgres servers under load, promotes the standby,
 * and verifies that no acknowledged task is lost. The exit code is 1 if one was.
 */
import { type FailoverFigures, failovers } from "../test/chaos/failover.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run failover -- [options]

Kills the primary of two Postgres servers under load, promotes its synchronous standby,
brings the killed one back, and verifies that no acknowledged task is lost. The exit
code is 1 if a guarantee was violated.

Options:
  --rounds <n>  how many failovers (default: 20)
  --seed <n>    repeats the choices of an earlier run (default: random)
  --help        shows this help
`;

const MAX_SHOWN = 50;

/** Undefined if help was requested. Throws a `UsageError`. */
function readOptions(): { readonly rounds: number; readonly seed: number } | undefined {
  const { values } = readArguments({
    options: {
      rounds: { type: "string" },
      seed: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    return undefined;
  }
  const number = (name: "rounds" | "seed", otherwise: number): number => {
    const text = values[name] ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) {
      throw new UsageError(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
    }
    return Number(text);
  };
  return {
    rounds: number("rounds", 20),
    seed: number("seed", Math.floor(Math.random() * 1_000_000)),
  };
}

function table(seed: number, figures: FailoverFigures): string {
  const ends = Object.entries(figures.finished).map(([status, count]) => `${count} ${status}`);
  const rows: readonly (readonly [string, string | number])[] = [
    ["seed", seed],
    ["failovers", figures.rounds],
    ["submitted", figures.submitted],
    ["acknowledged", figures.acknowledged],
    ["finished", ends.join(", ")],
    ["lost", figures.lost],
    ["otherwise wrong", figures.wrong],
    ["slowest return of service", `${(figures.slowestServiceMs / 1_000).toFixed(2)} s`],
  ];
  const shown = figures.violations.slice(0, MAX_SHOWN).map((line) => `  ${line}\n`);
  return rows.map(([label, value]) => `${label.padEnd(28)}${value}\n`).join("") + shown.join("");
}

/** Resolves with the exit code. */
async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  const figures = await failovers({
    ...options,
    onRound: ({ rounds, acknowledged, lost, wrong }) =>
      void process.stdout.write(
        `round ${rounds}: ${acknowledged} tasks, ${lost} lost, ${wrong} otherwise wrong\n`,
      ),
  });
  process.stdout.write(`\n${table(options.seed, figures)}`);
  return figures.violations.length === 0 ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(1));
}
try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  const message = err instanceof Error ? err.message : String(err);
  const hint = isUsage ? " (npm run failover -- --help shows the options)" : "";
  process.stderr.write(`failover: ${message}${hint}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
