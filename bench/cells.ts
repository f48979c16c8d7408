/**
 * Benchmark of cells: what a lifecycle takes of the node and of the databases where its task is in one of
 * one, two or three cells. Each database is a server of its own.
 */
import type { Backends, Postgres } from "./backends.ts";
import { startNode } from "./nodes.ts";
import { type ComparedPlatform, comparePlatforms, type PlatformsPlan } from "./platforms.ts";

const NAMES = ["a", "b", "c"];

export async function benchCells(
  backends: Backends,
  plan: PlatformsPlan,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const home = await backends.postgres();
  const servers: Postgres[] = [];
  const platforms: ComparedPlatform[] = [];
  for (const name of NAMES) {
    servers.push(await backends.startPostgres());
    const count = servers.length;
    const urls = await Promise.all(servers.map((each) => each.createDatabase(`cells_${name}`)));
    const { port, pid } = await startNode(stack, {
      database: await home.createDatabase(`cells_${name}`),
      data: `${backends.folder}/cells-${count}`,
      env: { TESSERA_CELLS: urls.map((url, at) => `${NAMES[at]}=${url}`).join(",") },
    });
    platforms.push({
      title: count === 1 ? "1 cell" : `${count} cells`,
      ports: [port],
      processes: [[pid], [home.pid], servers.map((server) => server.pid)],
    });
  }
  await comparePlatforms(platforms, ["node and worker", "home", "cells"], plan, write);
}
