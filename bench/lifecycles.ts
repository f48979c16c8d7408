/**
 * The lifecycle benchmark: a no-op task through the whole stack, compared with
 * the peers. Each round runs all contenders, starting with a different one,
 * because the machine's speed drifts; ratios are taken within each round, and
 * medians are reported.
 */
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backends } from "./backends.ts";
import { CONTENDERS, type Running, versionOf } from "./contenders.ts";
import { load, type MeasuredLoad } from "./program.ts";
import { rotate } from "./rotate.ts";
import { figure, median, table } from "./table.ts";

export interface LifecycleOptions {
  readonly peers: readonly string[];
  readonly connections: readonly number[];
  readonly rounds: number;
  readonly seconds: number;
}

/** Leftover work of a server should not fall into the next one's turn. */
const PAUSE_MS = 500;

export async function benchLifecycles(
  backends: Backends,
  options: LifecycleOptions,
  write: (text: string) => void,
): Promise<void> {
  const { rounds, seconds } = options;
  await using stack = new AsyncDisposableStack();
  const running = new Map<string, Running>();
  for (const name of options.peers) {
    try {
      const started = await CONTENDERS[name]?.start(backends);
      if (started) {
        stack.use(started.program);
        running.set(name, started);
      }
    } catch (err) {
      write(`not in the table: ${CONTENDERS[name]?.title}: ${reason(err)}\n`);
    }
  }
  write(`${await versions(backends, running)}\n`);
  for (const connections of options.connections) {
    write(
      `\n${connections} connections: medians of ${rounds} rounds of ${seconds} s each, after one to warm up\n\n`,
    );
    const results = new Map([...running.keys()].map((name) => [name, [] as MeasuredLoad[]]));
    for (let round = 0; round <= rounds; round += 1) {
      for (const name of rotate([...running.keys()], round)) {
        const { port, pids } = running.get(name) as Running;
        const plan = {
          port,
          connections,
          endpoint: "noop",
          seconds: round === 0 ? Math.min(2, seconds) : seconds,
        };
        const result = await measure(plan, pids, name);
        if (round > 0) {
          results.get(name)?.push(result);
        }
        await sleep(PAUSE_MS);
        // Nor what it has written and the system has not yet brought to the disk, for which others would wait.
        execFileSync("sync");
      }
    }
    write(resultTable(results));
  }
}

async function measure(
  plan: Parameters<typeof load>[0],
  pids: readonly number[],
  name: string,
): Promise<MeasuredLoad> {
  try {
    return await load(plan, pids);
  } catch (err) {
    throw new Error(`${CONTENDERS[name]?.title}: ${reason(err)}`, { cause: err });
  }
}

function resultTable(results: ReadonlyMap<string, readonly MeasuredLoad[]>): string {
  const ratio = (name: string, to: string): string => {
    const others = results.get(to);
    const own = results.get(name) ?? [];
    return figure(
      median(
        own.map(({ perSecond }, round) => perSecond / (others?.[round]?.perSecond ?? Number.NaN)),
      ),
      2,
    );
  };
  const rows = [...results].map(([name, rounds]) => {
    const of = (read: (round: MeasuredLoad) => number | undefined, digits = 1): string =>
      figure(median(rounds.map((round) => read(round) ?? Number.NaN)), digits);
    const speeds = rounds.map(({ perSecond }) => perSecond);
    return [
      CONTENDERS[name]?.title ?? name,
      of(({ perSecond }) => perSecond, 0),
      `${figure(Math.min(...speeds))}–${figure(Math.max(...speeds))}`,
      ratio(name, "nothing"),
      ratio(name, "bullmq"),
      of(({ submitMs }) => submitMs.p50),
      of(({ submitMs }) => submitMs.p99),
      of(({ startMs }) => startMs?.p50),
      of(({ startMs }) => startMs?.p99),
      of(({ lifecycleMs }) => lifecycleMs.p50),
      of(({ lifecycleMs }) => lifecycleMs.p99),
      of(({ cpuMicros }) => cpuMicros, 0),
      of(({ done, cpuSeconds }) => done / cpuSeconds, 0),
    ];
  });
  return table(
    [
      "",
      "lifecycles/s",
      "from–to",
      "/ nothing",
      "/ BullMQ",
      "submit p50 ms",
      "p99",
      "start p50 ms",
      "p99",
      "lifecycle p50 ms",
      "p99",
      "CPU µs",
      "generator's limit/s",
    ],
    rows,
  );
}

async function versions(
  backends: Backends,
  running: ReadonlyMap<string, Running>,
): Promise<string> {
  const runs = (...names: readonly string[]): boolean =>
    names.some((name) => [...running.keys()].some((each) => each.startsWith(name)));
  const told = ["bullmq", "pg-boss", "graphile-worker"].filter((name) => runs(name));
  const packages = ["fastify", ...told].map((name) => `${name} ${versionOf(name)}`);
  const databases = [
    runs("bullmq") && `Redis ${(await backends.redis()).version}`,
    runs("pg-boss", "graphile-worker", "postgres") &&
      `Postgres ${(await backends.postgres()).version}`,
  ];
  return [...packages, ...databases.filter(Boolean)].join(", ");
}

function reason(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
