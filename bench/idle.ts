/**
 * What an idle node asks of its database: on Postgres, transactions as the
 * server counts them; on SQLite, what is sent to the thread that owns it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { startTessera } from "./contenders.ts";
import type { Program } from "./program.ts";
import { figure } from "./table.ts";

/** Start-up is over by then. */
const SETTLE_MS = 10_000;

export interface IdleOptions {
  readonly database: string;
  /** Connected to the server of the database, when it is Postgres, but to another database. */
  readonly client?: Client;
  readonly seconds: number;
}

interface Count {
  readonly transactions: number;
  /** By name, where the thread is asked. */
  readonly questions?: Readonly<Record<string, number>>;
}

export async function benchIdle(
  { database, client, seconds }: IdleOptions,
  write: (text: string) => void,
): Promise<void> {
  const counter = new URL("./count-messages.ts", import.meta.url).href;
  const { program } = await startTessera(database, { nodeFlags: ["--import", counter] });
  await using _server = program;
  const count = () => (client ? countByPostgres(client, database) : countByThread(program));
  await sleep(SETTLE_MS);
  const before = await count();
  await sleep(seconds * 1000);
  const after = await count();
  const rate = (from: number, to: number): string => figure((to - from) / seconds, 2);
  const questions = Object.entries(after.questions ?? {})
    .map(([name, times]) => [name, times - (before.questions?.[name] ?? 0)] as const)
    .filter(([, times]) => times > 0)
    .map(([name, times]) => `${name} ${rate(0, times)}`);
  const total = rate(before.transactions, after.transactions);
  write(
    `\nidle node, over ${seconds} s: ${total} transactions per second` +
      `${questions.length > 0 ? ` (${questions.join(", ")})` : ""}\n`,
  );
}

async function countByThread(program: Program): Promise<Count> {
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
