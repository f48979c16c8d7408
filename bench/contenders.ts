/** The contenders of the benchmarks, and how each is started. All serve the same two routes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Backends } from "./backends.ts";
import { Program } from "./program.ts";

export interface Running {
  readonly port: number;
  /** The processes whose CPU time counts, each with its descendants. */
  readonly pids: readonly number[];
  readonly program: Program;
}

type Start = (backends: Backends) => Promise<Running>;

/** By the name that `--peers` takes, in the order of the table. */
export const CONTENDERS: Readonly<Record<string, { readonly title: string; start: Start }>> = {
  nothing: { title: "do-nothing Fastify", start: () => startPeer("nothing", [], []) },
  floor: {
    title: "the floor of a queue on SQLite",
    start: ({ folder }) => startPeer("floor", [join(folder, `floor-${Date.now()}.db`)], []),
  },
  bullmq: { title: "Fastify + BullMQ", start: onRedis("bullmq") },
  "bullmq-in-memory": {
    title: "Fastify + BullMQ, results in memory",
    start: onRedis("bullmq", "in-memory"),
  },
  "pg-boss": { title: "Fastify + pg-boss", start: onPostgres("pg-boss") },
  "pg-boss-notify": {
    title: "Fastify + pg-boss, notifications",
    start: onPostgres("pg-boss", "notify"),
  },
  "graphile-worker": {
    title: "Fastify + graphile-worker",
    start: onPostgres("graphile-worker"),
  },
  sqlite: {
    title: "Tessera on SQLite",
    start: (backends) => startTessera(join(backends.folder, "lifecycles.db")),
  },
  postgres: {
    title: "Tessera on Postgres",
    async start(backends) {
      const { createDatabase, pid } = await backends.postgres();
      return startTessera(await createDatabase("tessera"), { pids: [pid] });
    },
  },
};

function onRedis(peer: string, ...args: readonly string[]): Start {
  return async (backends) => {
    const { url, pid } = await backends.redis();
    return startPeer(peer, [url, ...args], [pid]);
  };
}

function onPostgres(peer: string, ...args: readonly string[]): Start {
  return async (backends) => {
    const { createDatabase, pid } = await backends.postgres();
    const url = await createDatabase([peer, ...args].join("_").replaceAll("-", "_"));
    return startPeer(peer, [url, ...args], [pid]);
  };
}

async function startPeer(
  name: string,
  args: readonly string[],
  pids: readonly number[],
): Promise<Running> {
  const file = new URL(`./peers/${name}.ts`, import.meta.url).pathname;
  const { program, match } = await Program.start(process.execPath, [file, ...args], /port (\d+)\n/);
  return { port: Number(match), pids: [program.pid, ...pids], program };
}

export interface TesseraOptions {
  /** Processes of its database. */
  readonly pids?: readonly number[];
  readonly nodeFlags?: readonly string[];
}

/** `tessera serve` of the no-op service on a SQLite file or a Postgres URL. */
export async function startTessera(
  database: string,
  { pids = [], nodeFlags = [] }: TesseraOptions = {},
): Promise<Running> {
  const path = (file: string): string => new URL(file, import.meta.url).pathname;
  const flags = { port: "0", workers: "1", database };
  const { program, match } = await Program.start(
    process.execPath,
    [
      ...nodeFlags,
      path("../bin/tessera.js"),
      "serve",
      path("./noop.ts"),
      ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
    ],
    /http:\/\/(?:localhost|127\.0\.0\.1):(\d+)/,
  );
  return { port: Number(match), pids: [program.pid, ...pids], program };
}

/** The version of an installed package. */
export function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
