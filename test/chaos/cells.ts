/**
 * A platform of two nodes whose tasks are in two cells. Home and the cells are servers of their own;
 * those of the cells are killed under load, or cut off by proxies that fall silent. Callers of the other
 * cell are to notice nothing of it, so the times of their tasks are measured before each kill and while
 * the cell is away.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cellOfTaskId } from "../../src/tasks/id.ts";
import { ChaosNode } from "./node.ts";
import { deploy, HEADERS, setUp } from "./platform.ts";
import { ask, storedWrongly } from "./postgres.ts";
import { SilentProxy } from "./proxy.ts";
import type { Random } from "./random.ts";
import type { ChaosDatabase } from "./run.ts";
import { KillablePostgres } from "./server.ts";

const NODES = 2;
/** By their numbers, from 1. */
const NAMES = ["a", "b"];
/** Of all strikes. */
const SHARE = 0.7;
/** Nothing is struck so long before a kill: its times are what the others are compared with. */
const MIN_CALM_MS = 500;
const MAX_CALM_MS = 1_500;
const MAX_AWAY_MS = 3_000;
/** Of the strikes at cells. */
const SILENT_SHARE = 0.25;
/** Longer than a node takes to notice. */
const MAX_SILENCE_MS = 10_000;

/** The workers of nodes start sooner so. */
const ENV = { TESSERA_SANDBOX: "permission" };

/** Times of the tasks in cells that are up. */
class Times {
  readonly #calm: number[] = [];
  readonly #away: number[] = [];
  /** The number of the cell that was killed; 0: all are up; undefined: something else is wrong. */
  #cellAway: number | undefined;
  #sinceMs = 0;

  /** From now on, this is so. */
  set cellAway(cell: number | undefined) {
    this.#cellAway = cell;
    this.#sinceMs = performance.now();
  }

  /** Takes the time of a task that has just ended. */
  add(taskId: string, tookMs: number): void {
    const cell = this.#cellAway;
    if (
      cell !== undefined &&
      cell !== cellOfTaskId(taskId) &&
      performance.now() - tookMs > this.#sinceMs
    ) {
      (cell === 0 ? this.#calm : this.#away).push(tookMs);
    }
  }

  /** For the table of figures. */
  rows(): readonly (readonly [string, string])[] {
    return [
      ["p99 while all cells are up", percentile(this.#calm)],
      ["p99 beside a killed cell", percentile(this.#away)],
    ];
  }
}

function percentile(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const at = sorted[Math.ceil(sorted.length * 0.99) - 1];
  return at === undefined ? "of no task" : `${at.toFixed(0)} ms of ${sorted.length} tasks`;
}

export async function cellsDatabase(random: Random): Promise<ChaosDatabase> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tessera-chaos-cells-"));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const servers: KillablePostgres[] = [];
  for (const _ of ["home", ...NAMES]) {
    const server = stack.use(await KillablePostgres.create());
    await server.initialise();
    await server.start();
    servers.push(server);
  }
  const [home, ...cells] = servers as [KillablePostgres, ...KillablePostgres[]];
  const proxies: SilentProxy[] = [];
  for (const { port } of cells) {
    proxies.push(stack.use(await SilentProxy.start(port)));
  }
  const addresses = cells.map(({ url }, at) => {
    const through = new URL(url);
    through.port = String(proxies[at]?.port);
    return `${NAMES[at]}=${through.href}`;
  });
  const flags = ["--data", folder, "--database", home.url];
  const env = { ...ENV, TESSERA_CELLS: addresses.join(",") };
  const nodes: ChaosNode[] = [];
  for (let index = 0; index < NODES; index += 1) {
    const args = (port: string) => ["start", "--port", port, ...flags];
    nodes.push(stack.use(await ChaosNode.create(args, { env })));
  }
  const password = await setUp({ flags, env });
  for (const node of nodes) {
    node.spawn();
  }
  await Promise.all(nodes.map((node) => node.ready()));
  // No call has had a key yet, so there is nothing that the first ones have to wait for.
  await ask(home.url, "UPDATE tessera.cells SET keyed_from_ms = 0");
  await deploy(nodes[0] as ChaosNode, password, ["--workers", "2"]);
  // Whoever runs rounds starts them.
  await Promise.all(nodes.map((node) => node.kill()));

  const times = new Times();
  const killed = { cells: 0 };
  const kill = async (): Promise<void> => {
    const victim = random.between(0, cells.length - 1);
    times.cellAway = 0;
    await sleep(random.between(MIN_CALM_MS, MAX_CALM_MS));
    times.cellAway = victim + 1;
    await cells[victim]?.kill();
    killed.cells += 1;
    await sleep(random.between(0, MAX_AWAY_MS));
    times.cellAway = undefined;
    await cells[victim]?.start();
    while (random.chance(0.15)) {
      // In the middle of its recovery, and of its return to the nodes.
      await sleep(random.between(0, 1_500));
      await cells[victim]?.kill();
      killed.cells += 1;
      await cells[victim]?.start();
    }
  };
  const silence = async (): Promise<void> => {
    const victim = random.pick(proxies);
    victim?.silence();
    await sleep(random.between(0, MAX_SILENCE_MS));
    victim?.speak();
  };
  const resources = stack.move();
  return {
    name: "cells",
    urls: [],
    nodes,
    headers: HEADERS,
    other: {
      share: SHARE,
      cause: () => (random.chance(SILENT_SHARE) ? silence() : kill()),
      killed,
    },
    onEnd: (taskId, tookMs) => times.add(taskId, tookMs),
    rows: () => times.rows(),
    check: (acknowledged) =>
      storedWrongly(
        servers.map(({ url }) => url),
        acknowledged,
      ),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
