/** Benchmark of the server's memory over many tasks that are pruned soon after their end. */
import { existsSync, statSync } from "node:fs";
import { startTessera } from "./contenders.ts";
import { load, memoryOf } from "./program.ts";
import { figure, table } from "./table.ts";

const CONNECTIONS = 64;
const STEPS = 8;

export interface MemoryOptions {
  readonly database: string;
  readonly tasks: number;
}

export async function benchMemory(
  { database, tasks }: MemoryOptions,
  write: (text: string) => void,
): Promise<void> {
  const { port, program } = await startTessera(database);
  await using _server = program;
  const rows: string[][] = [["0", figure(memoryOf(program.pid)), megabytes(database)]];
  for (let step = 1; step <= STEPS; step += 1) {
    const count = Math.round(tasks / STEPS);
    await load({ port, connections: CONNECTIONS, endpoint: "brief", lifecycles: count });
    rows.push([String(step * count), figure(memoryOf(program.pid)), megabytes(database)]);
  }
  write(
    `\nmemory over ${tasks} tasks that are kept for 1 s, ${CONNECTIONS} connections without a pause (node and worker together)\n\n`,
  );
  write(table(["tasks so far", "resident MiB", "database MiB"], rows));
}

/** The file with its write-ahead log; unknown for a server's database. */
function megabytes(database: string): string {
  const files = [database, `${database}-wal`].filter(existsSync);
  return files.length === 0
    ? "–"
    : figure(files.reduce((sum, file) => sum + statSync(file).size, 0) / 2 ** 20, 1);
}
