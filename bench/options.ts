/** Parses the command line of `npm run bench`. */
import { readArguments, UsageError } from "../scripts/usage.ts";
import { CONTENDERS } from "./contenders.ts";

const FIGURES: Readonly<Record<string, string>> = {
  lifecycles: "submits and their results, beside the peers (this is the default)",
  rate: "submits at a fixed 1,000 per second",
  fill: "what a task costs beside many finished and queued ones",
  bulk: "what it costs to delete, cancel and prune each of many tasks",
  memory: "over many tasks that are pruned",
  idle: "what an idle node asks of its database",
  tokens: "what it costs to know who is calling",
  metrics: "what it costs to count a call, and to answer /federate",
  python: "services in Python, beside bentoml serve",
  mounted: "a mounted server, beside uvicorn alone",
  remote: "workers that join, beside the node's own",
  sleeping: "a node with 1,000 deployments at rest",
  scrapes: "what callers wait longer while a Prometheus reads",
  statements: "what a task costs a Postgres, by the size of batches",
  cells: "what a task costs with tasks in one, two or three cells",
  nodes: "what a task costs with one, two or three nodes on a Postgres",
};

const DATABASES = ["sqlite", "postgres"];

const CONNECTIONS = "64,256";

export const USAGE = `Usage: npm run bench -- [figures…] [options]

Measures what npm run build has made; bench/README.md says what and how.

Figures:
${Object.entries(FIGURES)
  .map(([name, about]) => `  ${name.padEnd(20)}${about}\n`)
  .join("")}  all                 one after the other

Options:
  --peers <name,…>    what is compared in lifecycles (default: all of
                      ${Object.keys(CONTENDERS).join(", ")})
  --connections <n,…> of lifecycles, one table for each (default: ${CONNECTIONS})
  --rounds <n>        how often (default: 5; of scrapes 3)
  --seconds <n>       how long each time (default: 4; of rate 15, idle 60, scrapes 5)
  --tasks <n>         size of fill (default: 100000), memory (default: 200000) and
                      bulk (default: 20000)
  --against <rev>     a git revision, that statements and bulk measure beside these
  --database <name>   sqlite or postgres, for all but lifecycles, which have both (default: sqlite)
  --quick             less of everything, to see whether it works
  --help              shows this

Example:
  $ npm run bench -- fill --database postgres --rounds 3
`;

export interface BenchOptions {
  readonly figures: readonly string[];
  readonly peers: string[];
  readonly connections: number[];
  readonly database: string;
  readonly against: string | undefined;
  readonly quick: boolean;
  /** Returns a flag's value, or the default for a usual or a quick run. */
  number(flag: "rounds" | "seconds" | "tasks", usual: number, short: number): number;
}

/** Parses the options; undefined when help is requested. Throws a `UsageError`. */
export function readOptions(): BenchOptions | undefined {
  const { values, positionals } = readArguments({
    allowPositionals: true,
    options: {
      peers: { type: "string", default: Object.keys(CONTENDERS).join(",") },
      connections: { type: "string", default: CONNECTIONS },
      rounds: { type: "string" },
      seconds: { type: "string" },
      tasks: { type: "string" },
      database: { type: "string", default: "sqlite" },
      against: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { quick, database, against } = values;
  if (values.help) {
    return undefined;
  }
  const asked = positionals.length === 0 ? ["lifecycles"] : positionals;
  const peers = values.peers.split(",");
  refuseUnknown("figures", asked, [...Object.keys(FIGURES), "all"]);
  refuseUnknown("peers", peers, Object.keys(CONTENDERS));
  refuseUnknown("database", [database], DATABASES);
  const given = (flag: "rounds" | "seconds" | "tasks"): number | undefined => {
    const text = values[flag];
    return text === undefined ? undefined : positive(flag, text);
  };
  const numbers = {
    rounds: given("rounds"),
    seconds: given("seconds"),
    tasks: given("tasks"),
  };
  return {
    figures: asked.includes("all") ? Object.keys(FIGURES) : asked,
    peers,
    connections: values.connections.split(",").map((text) => positive("connections", text)),
    database,
    against,
    quick,
    number: (flag, usual, short) => numbers[flag] ?? (quick ? short : usual),
  };
}

function refuseUnknown(what: string, names: readonly string[], all: readonly string[]): void {
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    throw new UsageError(`unknown ${what}: ${unknown.join(", ")}; there are ${all.join(", ")}`);
  }
}

function positive(flag: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) {
    throw new UsageError(`--${flag} must be a number above 0, not ${JSON.stringify(text)}`);
  }
  return value;
}
