/**
 * Benchmark of cells: what a lifecycle takes of the node and of the databases where its task is in one of
 * one, two or three cells, at the same open load. Each database is a server of its own. It says CPU time,
 * which the cores that all of them share do not change; throughput over cells on one machine says nothing.
 */
import { join } from "node:path";
import type { Backends, Postgres } from "./backends.ts";
import { cpuSecondsOf, load, Program } from "./program.ts";
import { rotate } from "./rotate.ts";
import { figure, median, table } from "./table.ts";

const NAMES = ["a", "b", "c"];
const CONNECTIONS = 64;

export interface CellsOptions {
  readonly rounds: number;
  readonly seconds: number;
  /** Submits. */
  readonly perSecond: number;
}

/** In microseconds for each lifecycle. */
interface Cost {
  readonly node: number;
  readonly home: number;
  readonly cells: number;
}

interface Platform {
  readonly port: number;
  readonly node: number;
  readonly home: number;
  readonly cells: readonly number[];
}

export async function benchCells(
  backends: Backends,
  { rounds, seconds, perSecond }: CellsOptions,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const home = await backends.postgres();
  const servers: Postgres[] = [];
  const platforms: Platform[] = [];
  for (const name of NAMES) {
    servers.push(await backends.startPostgres());
    const count = servers.length;
    const urls = await Promise.all(servers.map((each) => each.createDatabase(`cells_${name}`)));
    const { program, match } = await Program.start(
      process.execPath,
      [
        new URL("hosting.ts", import.meta.url).pathname,
        await home.createDatabase(`cells_${name}`),
        join(backends.folder, `cells-${count}`),
        "1",
      ],
      /port (\d+) token \S+ ready\n/,
      { TESSERA_CELLS: urls.map((url, at) => `${NAMES[at]}=${url}`).join(",") },
    );
    stack.use(program);
    const cells = servers.map(({ pid }) => pid);
    platforms.push({ port: Number(match), node: program.pid, home: home.pid, cells });
  }
  const costs = new Map(platforms.map((platform) => [platform, [] as Cost[]]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const platform of rotate(platforms, round)) {
      const cost = await measure(platform, { perSecond, seconds });
      if (round > 0) {
        costs.get(platform)?.push(cost);
      }
    }
  }
  write(
    `\nCPU µs of a lifecycle at ${perSecond}/s over ${CONNECTIONS} connections: medians of ${rounds} rounds of ${seconds} s each, after one to warm up\n\n`,
  );
  const [alone] = costs.values();
  write(
    table(
      ["", "node and worker", "home", "cells", "all", "/ one cell"],
      [...costs].map(([{ cells }, all]) => {
        const of = (read: (cost: Cost) => number) => figure(median(all.map(read)));
        const ratios = all.map((cost, at) => sum(cost) / sum(alone?.[at]));
        return [
          cells.length === 1 ? "1 cell" : `${cells.length} cells`,
          of(({ node }) => node),
          of((cost) => cost.home),
          of((cost) => cost.cells),
          of(sum),
          figure(median(ratios), 2),
        ];
      }),
    ),
  );
}

async function measure(
  { port, node, home, cells }: Platform,
  plan: { readonly perSecond: number; readonly seconds: number },
): Promise<Cost> {
  const now = () => [[node], [home], cells].map(cpuSecondsOf);
  const before = now();
  const { done } = await load({
    ...{ ...plan, port, connections: CONNECTIONS, endpoint: "noop", deployment: "acme/noop-1" },
  });
  const [ofNode = 0, ofHome = 0, ofCells = 0] = now().map(
    (seconds, at) => ((seconds - (before[at] ?? 0)) / done) * 1e6,
  );
  return { node: ofNode, home: ofHome, cells: ofCells };
}

function sum(cost: Cost | undefined): number {
  return cost === undefined ? Number.NaN : cost.node + cost.home + cost.cells;
}
