/** Benchmark of services in Python, beside `bentoml serve` with the same functions. */
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { environment } from "../../test/e2e/clients/python-environment.ts";
import { freePort } from "../../test/free-port.ts";
import { Program } from "../program.ts";
import { figure, median, table } from "../table.ts";
import type { PythonPlan } from "./load.ts";

const CONNECTIONS = 64;

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

const KINDS = [
  { name: "sync api", endpoint: "sync", isTask: false },
  { name: "async api", endpoint: "later", isTask: false },
  { name: "task, its result", endpoint: "job", isTask: true },
] as const;

export async function benchPython(
  { folder, rounds, seconds }: PythonOptions,
  write: (text: string) => void,
): Promise<void> {
  const { python } = await environment({ name: "bench", packages: ["bentoml>=1.4"] });
  const contenders = [
    bentoml(python, folder),
    tessera("Tessera, the same file", path("bento_service.py"), python),
    tessera("Tessera, its own SDK", path("service.py"), python),
  ];
  const perSecond = contenders.map(() => KINDS.map((): number[] => []));
  const batches: { readonly alone: number[]; readonly together: number[] } = {
    alone: [],
    together: [],
  };
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) {
      const { program, port } = await contender.start();
      await using _server = program;
      for (const [kind, { endpoint, isTask }] of KINDS.entries()) {
        const common = { port, connections: CONNECTIONS, seconds, endpoint };
        const plan = isTask ? { ...common, task: contender.task } : common;
        await load({ ...plan, seconds: 1 });
        perSecond[index]?.[kind]?.push(await load(plan));
      }
      if (contender.name.endsWith("SDK")) {
        for (const endpoint of ["alone", "together"] as const) {
          const plan = { port, connections: CONNECTIONS, seconds, endpoint };
          batches[endpoint].push(await load(plan));
        }
      }
    }
  }
  const peer = perSecond[0]?.map(median) ?? [];
  write(`\nservices in Python, one worker, ${CONNECTIONS} connections, per second\n\n`);
  write(
    table(
      ["", ...KINDS.flatMap(({ name }) => [name, "/ BentoML"])],
      contenders.map(({ name }, index) => [
        name,
        ...(perSecond[index] ?? []).flatMap((figures, kind) => [
          figure(median(figures)),
          figure(median(figures) / (peer[kind] ?? Number.NaN), 1),
        ]),
      ]),
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

/** The calls of an endpoint that ended in a second. */
export async function load(plan: PythonPlan): Promise<number> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path("load.ts"), JSON.stringify(plan)],
    { timeout: 120_000 },
  );
  return (JSON.parse(stdout) as { readonly perSecond: number }).perSecond;
}
