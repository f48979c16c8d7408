/** Benchmark of submit latency under an open load of 1,000 submits per second. */
import { type Running, startTessera } from "./contenders.ts";
import type { LoadPlan } from "./load.ts";
import { load } from "./program.ts";
import { figure, table } from "./table.ts";

const CONNECTIONS = 64;

export interface RateOptions {
  readonly database: string;
  readonly perSecond: number;
  readonly seconds: number;
}

export async function benchRate(
  { database, perSecond, seconds }: RateOptions,
  write: (text: string) => void,
): Promise<void> {
  const { port, pids, program }: Running = await startTessera(database);
  await using _server = program;
  const plan: LoadPlan = { port, connections: CONNECTIONS, endpoint: "noop", perSecond };
  await load({ ...plan, seconds: 2 });
  const submits = await load({ ...plan, kind: "submit", seconds }, pids);
  const lifecycles = await load({ ...plan, seconds }, pids);
  write(
    `\nopen load of ${perSecond} submits/s over ${CONNECTIONS} connections for ${seconds} s\n\n`,
  );
  write(
    table(
      [
        "",
        "reached/s",
        "CPU µs",
        "submit p50 ms",
        "p99",
        "start p50 ms",
        "p99",
        "lifecycle p50 ms",
        "p99",
      ],
      [submits, lifecycles].map((result, index) => [
        index === 0 ? "submits alone" : "whole lifecycles",
        figure(result.perSecond),
        figure(result.cpuMicros),
        figure(result.submitMs.p50, 2),
        figure(result.submitMs.p99, 2),
        figure(result.startMs?.p50 ?? Number.NaN, 2),
        figure(result.startMs?.p99 ?? Number.NaN, 2),
        ...(index === 0
          ? ["–", "–"]
          : [figure(result.lifecycleMs.p50, 2), figure(result.lifecycleMs.p99, 2)]),
      ]),
    ),
  );
}
