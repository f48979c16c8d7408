/**
 * Benchmark of nodes: what a lifecycle takes where one, two or three of them share a Postgres, each with
 * a worker. Calls go to all nodes alike, so that most results are waited for at another node than the one
 * that runs the task.
 */
import type { Backends } from "./backends.ts";
import { type ComparedPlatform, comparePlatforms, type PlatformsPlan } from "./platforms.ts";
import { Program } from "./program.ts";

const COUNTS = [1, 2, 3];

export async function benchNodes(
  backends: Backends,
  plan: PlatformsPlan,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const platforms: ComparedPlatform[] = [];
  for (const count of COUNTS) {
    const server = await backends.startPostgres();
    const shared = {
      database: await server.createDatabase("nodes"),
      data: `${backends.folder}/nodes-${count}`,
      workers: count,
    };
    const nodes = [];
    for (let number = 0; number < count; number += 1) {
      nodes.push(await startNode(stack, shared));
    }
    const pids = nodes.map(({ pid }) => pid);
    const title = count === 1 ? "1 node" : `${count} nodes`;
    platforms.push({
      title,
      ports: nodes.map(({ port }) => port),
      processes: [pids, [server.pid]],
    });
  }
  await comparePlatforms(platforms, ["nodes and workers", "database"], plan, write);
}

interface NodeOptions {
  readonly database: string;
  readonly data: string;
  /** On all nodes of the database. Default: one. */
  readonly workers?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a node of `hosting.ts` in a process of its own; the stack ends it. */
export async function startNode(
  stack: AsyncDisposableStack,
  { database, data, workers = 1, env }: NodeOptions,
): Promise<{ readonly port: number; readonly pid: number }> {
  const { program, match } = await Program.start(
    process.execPath,
    [new URL("hosting.ts", import.meta.url).pathname, database, data, "1", String(workers)],
    /port (\d+) .*ready\n/,
    env,
  );
  stack.use(program);
  return { port: Number(match), pid: program.pid };
}
