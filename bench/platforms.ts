/**
 * Compares what a lifecycle takes of the processes of several platforms, at the same open load of each
 * node. It says CPU time, which the cores that all of them share do not change; throughput over several
 * nodes or databases on one machine says nothing.
 */
import { cpuSecondsOf, load } from "./program.ts";
import { rotate } from "./rotate.ts";
import { figure, median, table } from "./table.ts";

/** Of each node. */
const CONNECTIONS = 64;

export interface PlatformsPlan {
  readonly rounds: number;
  readonly seconds: number;
  /** Submits at each node. */
  readonly perSecond: number;
}

export interface ComparedPlatform {
  readonly title: string;
  /** Of its nodes. */
  readonly ports: readonly number[];
  /** Its processes, in the order of the columns. */
  readonly processes: readonly (readonly number[])[];
}

/** Measures them by turns, and writes a table. The ratios are those to the first platform. */
export async function comparePlatforms(
  platforms: readonly ComparedPlatform[],
  columns: readonly string[],
  { rounds, ...plan }: PlatformsPlan,
  write: (text: string) => void,
): Promise<void> {
  /** Of each round: CPU microseconds of a lifecycle, by column. */
  const costs = new Map(platforms.map((platform) => [platform, [] as number[][]]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const platform of rotate(platforms, round)) {
      const cost = await measure(platform, plan);
      if (round > 0) {
        costs.get(platform)?.push(cost);
      }
    }
  }
  write(
    `\nCPU µs of a lifecycle at ${plan.perSecond}/s over ${CONNECTIONS} connections at each node: medians of ${rounds} rounds of ${plan.seconds} s each, after one to warm up\n\n`,
  );
  const [first = []] = costs.values();
  write(
    table(
      ["", ...columns, "all", "/ the first"],
      [...costs].map(([{ title }, all]) => {
        const ratios = all.map((cost, at) => sum(cost) / sum(first[at] ?? []));
        return [
          title,
          ...columns.map((_, at) => figure(median(all.map((cost) => cost[at] ?? 0)))),
          figure(median(all.map(sum))),
          figure(median(ratios), 2),
        ];
      }),
    ),
  );
}

async function measure(
  { ports, processes }: ComparedPlatform,
  { perSecond, seconds }: Omit<PlatformsPlan, "rounds">,
): Promise<number[]> {
  const before = processes.map(cpuSecondsOf);
  const call = { endpoint: "noop", deployment: "acme/noop-1", connections: CONNECTIONS };
  const loads = await Promise.all(ports.map((port) => load({ ...call, port, perSecond, seconds })));
  const done = sum(loads.map((each) => each.done));
  return processes.map((pids, at) => ((cpuSecondsOf(pids) - (before[at] ?? 0)) / done) * 1e6);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
