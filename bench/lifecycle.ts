/**
 * `npm run bench`: lifecycles of a no-op task (submit, then get with wait)
 * through everything there is, beside a Fastify server that does nothing in
 * both calls. Rounds alternate between the two, because the machine's speed
 * drifts; the ratio is taken within each round, and the median is what counts.
 *
 * The load comes from a process of its own over raw sockets (`load.ts`). Its
 * own limit is told as lifecycles per second of its CPU time: as long as that
 * is well above what was reached, the generator was not what was measured.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import type { LoadPlan, LoadResult } from "./load.ts";

const { values } = parseArgs({
  options: {
    connections: { type: "string", default: "64" },
    lifecycles: { type: "string", default: "30000" },
    rounds: { type: "string", default: "5" },
    database: { type: "string", default: "file" },
  },
});
const connections = Number(values.connections);
const lifecycles = Number(values.lifecycles);
const rounds = Number(values.rounds);

const folder = mkdtempSync(join(tmpdir(), "tessera-bench-"));
const database = values.database === "file" ? join(folder, "tasks.db") : values.database;
const servers: ChildProcess[] = [];

/** Starts a server and finds the port in the first line of its output that has one. */
async function start(args: readonly string[], port: RegExp): Promise<number> {
  const server = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TESSERA_LOG_LEVEL: "warn" },
  });
  servers.push(server);
  let output = "";
  for await (const chunk of server.stdout) {
    output += chunk;
    const found = port.exec(output)?.[1];
    if (found !== undefined) {
      server.stdout.resume();
      return Number(found);
    }
  }
  throw new Error(`the server ended before it said its port: ${args.join(" ")}\n${output}`);
}

async function load(port: number): Promise<LoadResult> {
  const plan: LoadPlan = { port, connections, lifecycles, endpoint: "noop" };
  const file = new URL("./load.ts", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, [file, JSON.stringify(plan)]);
  return JSON.parse(stdout) as LoadResult;
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

function row(name: string, results: readonly LoadResult[]): string {
  const of = (read: (result: LoadResult) => number, digits = 1): string =>
    median(results.map(read)).toFixed(digits);
  return [
    name.padEnd(12),
    of((result) => result.lifecycles / result.seconds, 0).padStart(12),
    of((result) => result.submitMs.p50).padStart(11),
    of((result) => result.submitMs.p99).padStart(11),
    of((result) => result.lifecycleMs.p50).padStart(14),
    of((result) => result.lifecycleMs.p99).padStart(14),
    of((result) => result.lifecycles / result.cpuSeconds, 0).padStart(16),
  ].join(" ");
}

try {
  const nothing = await start(["bench/nothing.ts"], /^(\d+)\n/);
  const tessera = await start(
    [
      "bin/tessera.js",
      "serve",
      "bench/noop.ts",
      "--port",
      "0",
      "--workers",
      "1",
      "--database",
      database,
    ],
    /http:\/\/localhost:(\d+)/,
  );
  const results = { nothing: [] as LoadResult[], tessera: [] as LoadResult[] };
  process.stdout.write(
    `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}\n` +
      `${connections} connections, ${lifecycles} lifecycles in each of ${rounds} rounds after one to warm up, database ${values.database}\n\n`,
  );
  for (let round = 0; round <= rounds; round += 1) {
    const pair = { nothing: await load(nothing), tessera: await load(tessera) };
    if (pair.tessera.failed + pair.nothing.failed > 0) {
      throw new Error(
        `${pair.tessera.failed} lifecycles of tessera and ${pair.nothing.failed} of nothing failed`,
      );
    }
    if (round > 0) {
      results.nothing.push(pair.nothing);
      results.tessera.push(pair.tessera);
    }
  }
  const ratios = results.tessera.map(
    ({ seconds }, index) => (results.nothing[index]?.seconds ?? 0) / seconds,
  );
  process.stdout.write(
    "medians      lifecycles/s  submit p50  submit p99  lifecycle p50  lifecycle p99  generator alone\n" +
      "                              (ms)        (ms)          (ms)           (ms)     (per CPU second)\n" +
      `${row("do-nothing", results.nothing)}\n${row("tessera", results.tessera)}\n\n` +
      `tessera / do-nothing: median ${median(ratios).toFixed(2)}, from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}\n`,
  );
} finally {
  for (const server of servers) {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
  rmSync(folder, { recursive: true, force: true });
}
