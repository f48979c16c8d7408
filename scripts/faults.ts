/**
 * `npm run faults`: rounds of faults between agents and their node. Prints figures at the end;
 * the exit code is 1 if a task was lost, ended twice or ran at once in two places.
 */
import { runFaults } from "../test/e2e/workers/faults/rounds.ts";
import makeCopy from "../test/stripped.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run faults -- [options]

Drops, delays, cuts and silences the network between two agents and their node, and
kills node, agents and processes of the service. Prints figures at the end; the exit
code is 1 if an acknowledged task was lost, ended twice or ran at once in two places.

Options:
  --rounds <n>    how many faults (default: 1000)
  --silence <s>   seconds of silence after which a worker is lost (default: 15)
  --seed <n>      repeats the choices of an earlier run (default: random)
  --help          shows this help

Example:
  $ npm run faults -- --rounds 100 --silence 3 --seed 7
`;

const RECOVERY_MS = 120_000;
const TOLD_EVERY_ROUNDS = 25;

function numberOf(text: string | undefined, name: string, otherwise: number): number {
  if (text !== undefined && !/^\d{1,9}$/.test(text)) {
    throw new UsageError(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
  }
  return text === undefined ? otherwise : Number(text);
}

async function run(): Promise<number> {
  const { values } = readArguments({
    options: {
      rounds: { type: "string" },
      silence: { type: "string" },
      seed: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const seed = numberOf(values.seed, "seed", Math.floor(Math.random() * 1_000_000));
  console.log(`seed ${seed}`);
  makeCopy();
  const figures = await runFaults({
    seed,
    rounds: numberOf(values.rounds, "rounds", 1_000),
    silenceMs: numberOf(values.silence, "silence", 15) * 1_000,
    recoveryMs: RECOVERY_MS,
    onRound: (round, fault) => {
      if (round % TOLD_EVERY_ROUNDS === 0) {
        console.log(`round ${round}: ${fault}`);
      }
    },
  });
  console.log(JSON.stringify(figures, undefined, 2));
  const { lost, endedTwice, overlaps } = figures;
  return lost.length + endedTwice.length + overlaps.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await run();
} catch (err) {
  if (!(err instanceof UsageError)) {
    throw err;
  }
  console.error(`${err.message}\n\n${USAGE}`);
  process.exitCode = USAGE_EXIT_CODE;
}
