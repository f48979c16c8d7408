/**
 * Benchmark of throughput with a full table: one server with many finished
 * tasks and as many queued behind the concurrency limit of another endpoint,
 * compared with an empty one. Rounds alternate between the two.
 */
import { startTessera } from "./contenders.ts";
import { load } from "./program.ts";
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
  const results = { empty: [] as number[], full: [] as number[] };
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, { port }] of [
      ["empty", empty],
      ["full", full],
    ] as const) {
      const result = await load({ port, connections: 64, endpoint: "noop", seconds });
      if (round > 0) {
        results[name].push(result.done / result.seconds);
      }
    }
  }
  const ratios = results.full.map((speed, round) => speed / (results.empty[round] ?? Number.NaN));
  write(
    `\n64 connections, with ${tasks} finished tasks and ${tasks} queued ones that a limit holds back: medians of ${rounds} rounds of ${seconds} s\n\n`,
  );
  write(
    table(
      ["", "lifecycles/s", "/ empty", "from–to"],
      [
        ["empty queue", figure(median(results.empty)), "1.00", ""],
        [
          "full table",
          figure(median(results.full)),
          figure(median(ratios), 2),
          `${figure(Math.min(...ratios), 2)}–${figure(Math.max(...ratios), 2)}`,
        ],
      ],
    ),
  );
}
