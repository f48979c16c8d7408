/**
 * Benchmark of throughput with a full table: one server with many finished
 * tasks and as many queued behind the concurrency limit of another endpoint,
 * compared with an empty one. Rounds alternate between the two.
 */
import { startTessera } from "./contenders.ts";
import { load, type MeasuredLoad } from "./program.ts";
import { figure, median, table } from "./table.ts";

export interface BacklogOptions {
  readonly databases: { readonly empty: string; readonly full: string };
  /** How many finished, and how many queued. */
  readonly tasks: number;
  readonly rounds: number;
  readonly seconds: number;
}

export async function benchBacklog(
  { databases, tasks, rounds, seconds }: BacklogOptions,
  write: (text: string) => void,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const empty = await startTessera(databases.empty);
  stack.use(empty.program);
  const full = await startTessera(databases.full);
  stack.use(full.program);
  await load({ port: full.port, connections: 256, endpoint: "noop", lifecycles: tasks });
  const fill = { port: full.port, connections: 256, endpoint: "blocked", lifecycles: tasks };
  await load({ ...fill, kind: "submit" });
  const results = { empty: [] as MeasuredLoad[], full: [] as MeasuredLoad[] };
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, { port, pids }] of [
      ["empty", empty],
      ["full", full],
    ] as const) {
      const result = await load({ port, connections: 64, endpoint: "noop", seconds }, pids);
      if (round > 0) {
        results[name].push(result);
      }
    }
  }
  const of = (name: keyof typeof results, read: (round: MeasuredLoad) => number): string =>
    figure(median(results[name].map(read)));
  const speed = ({ perSecond }: MeasuredLoad): number => perSecond;
  const cpu = ({ cpuMicros }: MeasuredLoad): number => cpuMicros;
  const ratios = results.full.map(
    ({ perSecond }, round) => perSecond / (results.empty[round]?.perSecond ?? Number.NaN),
  );
  write(
    `\n64 connections, with ${tasks} finished tasks and ${tasks} queued ones that a limit holds back: medians of ${rounds} rounds of ${seconds} s\n\n`,
  );
  write(
    table(
      ["", "lifecycles/s", "/ empty", "from–to", "CPU µs"],
      [
        ["empty queue", of("empty", speed), "1.00", "", of("empty", cpu)],
        [
          "full table",
          of("full", speed),
          figure(median(ratios), 2),
          `${figure(Math.min(...ratios), 2)}–${figure(Math.max(...ratios), 2)}`,
          of("full", cpu),
        ],
      ],
    ),
  );
}
