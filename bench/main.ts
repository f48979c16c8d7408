/**
 * `npm run bench`: what bench/README.md describes. The first argument says
 * which figures; everything else has a flag.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Backends } from "./backends.ts";
import { benchBacklog } from "./backlog.ts";
import { CONTENDERS } from "./contenders.ts";
import { benchIdle } from "./idle.ts";
import { benchLifecycles } from "./lifecycles.ts";
import { benchMemory } from "./memory.ts";
import { benchMetrics } from "./metrics.ts";
import { benchRate } from "./rate.ts";
import { benchScrapes } from "./scrapes.ts";
import { machine } from "./table.ts";
import { benchTokens } from "./tokens.ts";

const FIGURES = ["lifecycles", "rate", "backlog", "memory", "idle", "tokens", "metrics", "scrapes"];

/** What is compared unless `--peers` says otherwise. */
const USUAL = Object.keys(CONTENDERS).filter((name) => name !== "pg-boss-polling");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peers: { type: "string", default: USUAL.join(",") },
    connections: { type: "string", default: "64,256" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    tasks: { type: "string" },
    database: { type: "string", default: "sqlite" },
    quick: { type: "boolean", default: false },
  },
});
const { quick, database } = values;
const number = (text: string | undefined, usual: number, short: number): number => {
  const value = Number(text ?? (quick ? short : usual));
  if (!(value > 0)) {
    throw new Error(`not a number above 0: ${text}`);
  }
  return value;
};
const peers = values.peers.split(",");
const asked = positionals.length === 0 ? ["lifecycles"] : positionals;
const figures = asked.includes("all") ? FIGURES : asked;
const unknown = [
  ...figures.filter((name) => !FIGURES.includes(name)),
  ...peers.filter((name) => !(name in CONTENDERS)),
  ...(["sqlite", "postgres"].includes(database) ? [] : [database]),
];
if (unknown.length > 0) {
  process.stderr.write(
    `unknown: ${unknown.join(", ")}\n` +
      `npm run bench -- [${FIGURES.join("|")}|all] [--quick] [--rounds n] [--seconds n]\n` +
      "  [--connections 64,256] [--tasks n] [--database sqlite|postgres]\n" +
      `  [--peers ${Object.keys(CONTENDERS).join(",")}]\n`,
  );
  process.exit(2);
}

const write = (text: string): void => void process.stdout.write(text);
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));

await using backends = new Backends();

/** A fresh database on the backend that was asked for. */
async function fresh(name: string): Promise<string> {
  return database === "sqlite"
    ? join(backends.folder, `${name}.db`)
    : (await backends.postgres()).createDatabase(name);
}

write(`${machine()}\n`);
for (const name of figures) {
  switch (name) {
    case "lifecycles":
      await benchLifecycles(
        backends,
        {
          peers,
          connections: values.connections.split(",").map((text) => number(text, 64, 64)),
          rounds: number(values.rounds, 5, 1),
          seconds: number(values.seconds, 4, 2),
        },
        write,
      );
      break;
    case "rate":
      await benchRate(
        { database: await fresh("rate"), perSecond: 1_000, seconds: number(values.seconds, 15, 5) },
        write,
      );
      break;
    case "backlog":
      await benchBacklog(
        {
          databases: { empty: await fresh("empty"), full: await fresh("full") },
          tasks: number(values.tasks, 100_000, 10_000),
          rounds: number(values.rounds, 5, 1),
          seconds: number(values.seconds, 3, 2),
        },
        write,
      );
      break;
    case "memory":
      await benchMemory(
        { database: await fresh("memory"), tasks: number(values.tasks, 200_000, 40_000) },
        write,
      );
      break;
    case "idle": {
      const url = await fresh("idle");
      const client = database === "postgres" && (await backends.postgres()).client;
      const idle = { ...(client && { client }), seconds: number(values.seconds, 60, 10) };
      await benchIdle({ ...idle, database: url }, write);
      await benchIdle(
        {
          ...{ ...idle, database: await fresh("idle_platform") },
          platform: { deployments: 10, data: join(backends.folder, "platform") },
        },
        write,
      );
      break;
    }
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
    case "metrics":
      await benchMetrics(
        {
          calls: quick ? 100_000 : 1_000_000,
          series: quick ? 10_000 : 100_000,
          rounds: number(values.rounds, 5, 3),
        },
        write,
      );
      break;
    case "scrapes":
      await benchScrapes(
        {
          database: await fresh("scrapes"),
          series: quick ? 10_000 : 100_000,
          rounds: number(values.rounds, 3, 1),
          seconds: number(values.seconds, 5, 2),
        },
        write,
      );
  }
}
