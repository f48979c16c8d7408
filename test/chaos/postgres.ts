/** Two nodes on one Postgres, each behind a proxy; and what happens to databases. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startPostgres } from "../postgres.ts";
import { SilentProxy } from "./proxy.ts";
import type { Random } from "./random.ts";
import type { ChaosDatabase } from "./run.ts";

const NODES = 2;
/** Of all strikes. */
const OTHER_SHARE = 0.15;
const MAX_SILENCE_MS = 8_000;
/** Longer than a lease: the other node takes over what runs. */
const LONG_SILENCE_MS = 25_000;

export async function postgresDatabase(random: Random): Promise<ChaosDatabase> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres({ durable: true }));
  const proxies: SilentProxy[] = [];
  for (let index = 0; index < NODES; index += 1) {
    proxies.push(stack.use(await SilentProxy.start(server.port)));
  }
  const through = ({ port }: SilentProxy): string => {
    const url = new URL(server.url);
    url.port = String(port);
    return url.href;
  };
  const faults = [
    async (): Promise<void> => {
      await server.stop();
      await sleep(random.between(0, 3_000));
      await server.start();
    },
    async (): Promise<void> => {
      await ask(
        server.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
      );
    },
    async (): Promise<void> => {
      const proxy = random.pick(proxies);
      const long = random.chance(0.15);
      proxy?.silence();
      await sleep(long ? LONG_SILENCE_MS : random.between(100, MAX_SILENCE_MS));
      proxy?.speak();
    },
  ];
  const resources = stack.move();
  return {
    name: "Postgres",
    urls: proxies.map(through),
    other: {
      share: OTHER_SHARE,
      cause: async () => random.pick(faults)?.(),
    },
    check: (acknowledged) => storedWrongly([server.url], acknowledged),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** What is wrong with databases, when nothing is under way and so many tasks were acknowledged. */
export async function storedWrongly(
  urls: readonly string[],
  acknowledged: number,
): Promise<string[]> {
  const found: string[] = [];
  let stored = 0;
  for (const url of urls) {
    const [tasks] = await ask(url, "SELECT count(*)::int AS n FROM tessera.tasks");
    stored += Number(tasks?.n);
    const live = await ask(url, "SELECT task_id, status FROM tessera.live_tasks LIMIT 5");
    if (live.length > 0) {
      found.push(`nothing waits or runs, and there is ${JSON.stringify(live)}`);
    }
  }
  if (stored !== acknowledged) {
    found.push(`${stored} tasks are stored, ${acknowledged} were acknowledged`);
  }
  return found;
}

/** One statement on a connection of its own. */
export async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  // A restart in the middle of it is an error of the query too.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
