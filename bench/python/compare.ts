/** Benchmark of services in Python, beside `bentoml serve` with the same functions. */
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { environment } from "../../test/e2e/clients/python-environment.ts";
import { freePort } from "../../test/free-port.ts";
import { cpuSecondsOf, Program } from "../program.ts";
import { figure, median, table } from "../table.ts";
import type { PythonBody, PythonPlan } from "./load.ts";

const CONNECTIONS = 64;
const LARGE_CONNECTIONS = 8;

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const TESSERA = path("../../bin/tessera.js");

export interface PythonOptions {
  /** For what contenders store. */
  readonly folder: string;
  readonly rounds: number;
  readonly seconds: number;
}

/** Started for one round: one worker each. */
interface Contender {
  readonly name: string;
  readonly task: PythonPlan["task"];
  start(): Promise<{ readonly program: Program; readonly port: number }>;
}

interface Kind {
  readonly name: string;
  readonly endpoint: string;
  readonly isTask?: boolean;
  readonly connections?: number;
  readonly body?: PythonBody;
}

/** What is called; large bodies over fewer connections. */
function kindsIn(folder: string): Kind[] {
  const large = (argument: string, contentType: string): Kind => ({
    ...{ name: `a ${argument} of 200 kB`, endpoint: argument, connections: LARGE_CONNECTIONS },
    body: { file: join(folder, argument), argument, contentType },
  });
  return [
    { name: "sync api", endpoint: "sync" },
    { name: "async api", endpoint: "later" },
    { name: "task, its result", endpoint: "job", isTask: true },
    {
      ...{ name: "an array of 90,000 floats", endpoint: "array" },
      ...{ connections: LARGE_CONNECTIONS, body: { numbers: 90_000 } },
    },
    large("file", "application/octet-stream"),
    large("picture", "image/jpeg"),
  ];
}

export async function benchPython(
  { folder, rounds, seconds }: PythonOptions,
  write: (text: string) => void,
): Promise<void> {
  const packages = ["bentoml>=1.4", "numpy", "pillow"];
  const { python } = await environment({ name: "bench", packages });
  await promisify(execFile)(python, [path("files.py"), folder]);
  const kinds = kindsIn(folder);
  const contenders = [
    bentoml(python, folder),
    tessera("Tessera, the same file", path("bento_service.py"), python),
    tessera("Tessera, its own SDK", path("service.py"), python),
  ];
  const measured = kinds.map(() => contenders.map((): PythonLoad[] => []));
  const batches: { readonly alone: number[]; readonly together: number[] } = {
    alone: [],
    together: [],
  };
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) {
      const { program, port } = await contender.start();
      await using _server = program;
      for (const [at, { endpoint, isTask, connections = CONNECTIONS, body }] of kinds.entries()) {
        const plan: PythonPlan = {
          ...{ port, connections, seconds, endpoint },
          ...(isTask && { task: contender.task }),
          ...(body && { body }),
        };
        await load({ ...plan, seconds: 1 }, program);
        measured[at]?.[index]?.push(await load(plan, program));
      }
      if (contender.name.endsWith("SDK")) {
        for (const endpoint of ["alone", "together"] as const) {
          const plan = { port, connections: CONNECTIONS, seconds, endpoint };
          batches[endpoint].push((await load(plan, program)).perSecond);
        }
      }
    }
  }
  write(
    `\nservices in Python, one worker, ${CONNECTIONS} connections, ${LARGE_CONNECTIONS} with large bodies\n\n`,
  );
  write(
    table(
      ["", "", "per second", "/ BentoML", "CPU µs", "/ BentoML"],
      kinds.flatMap(({ name }, at) => {
        const all = measured[at] ?? [];
        const of = (rounds: readonly PythonLoad[] = [], read: (round: PythonLoad) => number) =>
          median(rounds.map(read));
        const speed = ({ perSecond }: PythonLoad): number => perSecond;
        const cpu = ({ cpuMicros }: PythonLoad): number => cpuMicros;
        return all.map((rounds, index) => [
          index === 0 ? name : "",
          contenders[index]?.name ?? "",
          figure(of(rounds, speed)),
          figure(of(rounds, speed) / of(all[0], speed), 1),
          figure(of(rounds, cpu)),
          figure(of(rounds, cpu) / of(all[0], cpu), 1),
        ]);
      }),
    ),
  );
  const [alone, together] = [median(batches.alone), median(batches.together)];
  write(`\na function of 10 ms: ${figure(alone)} calls per second one by one, `);
  write(`${figure(together)} in batches of up to 32 (${figure(together / alone, 1)} times)\n`);
}

function bentoml(python: string, folder: string): Contender {
  return {
    name: "bentoml serve",
    task: "polls",
    async start() {
      const port = await freePort();
      const serve = ["-m", "bentoml", "serve", "bento_service:Bench", "--working-dir", path(".")];
      const { program } = await Program.start(
        python,
        [...serve, "--port", String(port), "--host", "127.0.0.1"],
        /initialized/,
        {
          // Its database of tasks begins empty.
          BENTOML_HOME: mkdtempSync(join(folder, "bentoml-")),
          BENTOML_DO_NOT_TRACK: "True",
          // As Tessera, it logs no calls.
          BENTOML_CONFIG_OPTIONS: "services.Bench.logging.access.enabled=false",
        },
      );
      await answers(port);
      return { program, port };
    },
  };
}

function tessera(name: string, service: string, python: string): Contender {
  return {
    name,
    task: "waits",
    start: () => startTessera(service, python),
  };
}

/** `tessera serve` with one worker. */
export async function startTessera(service: string, python: string) {
  const { program, match } = await Program.start(
    process.execPath,
    [TESSERA, "serve", service, "--python", python, "--port", "0", "--workers", "1"],
    / on http:\/\/localhost:(\d+)\n/,
  );
  return { program, port: Number(match) };
}

/** Waits until the service itself answers, and not only its port. */
async function answers(port: number): Promise<void> {
  for (let attempts = 0; attempts < 300; attempts += 1) {
    const found = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (found?.ok) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("bentoml serve did not become ready");
}

export interface PythonLoad {
  /** The calls of an endpoint that ended in a second. */
  readonly perSecond: number;
  /** CPU time of the server for each, in microseconds. */
  readonly cpuMicros: number;
}

/** Calls an endpoint of a server, from a process of its own. */
export async function load(plan: PythonPlan, server: Program): Promise<PythonLoad> {
  const before = cpuSecondsOf([server.pid]);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path("load.ts"), JSON.stringify(plan)],
    { timeout: 120_000 },
  );
  const cpuSeconds = cpuSecondsOf([server.pid]) - before;
  const { perSecond, done } = JSON.parse(stdout) as { perSecond: number; done: number };
  return { perSecond, cpuMicros: (cpuSeconds / done) * 1e6 };
}
