/**
 * Benchmark of an idle node's database load: on Postgres, the server's count of
 * transactions; on SQLite, messages to the storage thread. It measures a single
 * service, and a platform with several deployments.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { startTessera } from "./contenders.ts";
import { Program } from "./program.ts";
import { figure } from "./table.ts";

/** Start-up is over by then. */
const SETTLE_MS = 10_000;

/** After its last call, a platform keeps its caches fresh for a while. */
const SETTLE_PLATFORM_MS = 45_000;

export interface IdleOptions {
  readonly database: string;
  /** For Postgres: a client connected to another database of the same server. */
  readonly client?: Client;
  readonly seconds: number;
  /** A platform with this many deployments, and its data folder. Default: a single service. */
  readonly platform?: { readonly deployments: number; readonly data: string };
}

/** What a program has asked of its database so far. */
export interface Count {
  readonly transactions: number;
  /** By name, where the thread is asked. */
  readonly questions?: Readonly<Record<string, number>>;
}

export async function benchIdle(
  { database, client, seconds, platform }: IdleOptions,
  write: (text: string) => void,
): Promise<void> {
  const counter = new URL("./count-messages.ts", import.meta.url).href;
  const nodeFlags = ["--import", counter];
  const { program } = platform
    ? await startPlatform(database, platform, nodeFlags)
    : await startTessera(database, { nodeFlags });
  await using _server = program;
  const count = () => (client ? countByPostgres(client, database) : countByThread(program));
  await sleep(platform ? SETTLE_PLATFORM_MS : SETTLE_MS);
  const before = await count();
  await sleep(seconds * 1000);
  const after = await count();
  const questions = questionsBetween(before, after, seconds);
  const total = figure((after.transactions - before.transactions) / seconds, 2);
  write(
    `\nidle node${platform ? ` with ${platform.deployments} deployments` : ""}, over ${seconds} s: ${total} transactions per second` +
      `${questions.length > 0 ? ` (${questions.join(", ")})` : ""}\n`,
  );
}

function startPlatform(
  database: string,
  { deployments, data }: NonNullable<IdleOptions["platform"]>,
  nodeFlags: readonly string[],
) {
  const file = new URL("hosting.ts", import.meta.url).pathname;
  const args = [...nodeFlags, file, database, data, String(deployments)];
  return Program.start(process.execPath, args, /port .* (ready)\n/);
}

/** What was asked in the meantime, with how often in each of `parts` of the time. */
export function questionsBetween(before: Count, after: Count, parts: number): string[] {
  return Object.entries(after.questions ?? {})
    .map(([name, times]) => [name, times - (before.questions?.[name] ?? 0)] as const)
    .filter(([, times]) => times > 0)
    .map(([name, times]) => `${name} ${figure(times / parts, 2)}`);
}

/** Needs `count-messages.ts` in the program. */
export async function countByThread(program: Program): Promise<Count> {
  const [, json = ""] = await program.ask("SIGUSR2", /counted (.+)\n/);
  return JSON.parse(json) as Count;
}

async function countByPostgres(client: Client, database: string): Promise<Count> {
  const { rows } = await client.query(
    "SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = $1",
    [new URL(database).pathname.slice(1)],
  );
  return { transactions: Number(rows[0]?.count) };
}
