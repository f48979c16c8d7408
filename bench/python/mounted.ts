/** Benchmark of a mounted server, beside the same application in uvicorn alone. */
import { fileURLToPath } from "node:url";
import { environment } from "../../test/e2e/clients/python-environment.ts";
import { freePort } from "../../test/free-port.ts";
import { Program } from "../program.ts";
import { figure, median, table } from "../table.ts";
import { load, type PythonLoad, startTessera } from "./compare.ts";

const CONNECTIONS = 32;
const PACKAGES = ["fastapi", "uvicorn", "uvloop", "httptools"];
const APP = fileURLToPath(new URL("mounted_app.py", import.meta.url));
const SDK = fileURLToPath(new URL("../../clients/python/src", import.meta.url));

export interface MountedOptions {
  readonly rounds: number;
  readonly seconds: number;
}

interface Running {
  readonly program: Program;
  readonly port: number;
}

/** Every contender runs all the time, and has the load in turn: the machine may be busy. */
export async function benchMounted(
  { rounds, seconds }: MountedOptions,
  write: (text: string) => void,
): Promise<void> {
  const { python } = await environment({ name: "bench-mounted", packages: PACKAGES });
  await using alone = await uvicorn(python);
  await using plain = await uvicorn(python, "--loop", "asyncio", "--http", "h11");
  await using mounted = disposed(await startTessera(APP, python));
  const contenders = [
    { name: "uvicorn, uvloop and httptools", ...alone },
    { name: "uvicorn, asyncio and h11", ...plain },
    { name: "Tessera, mounted", ...mounted },
  ];
  const figures = contenders.map((): PythonLoad[] => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, { program, port }] of contenders.entries()) {
      const plan = { port, connections: CONNECTIONS, seconds, endpoint: "hello" };
      const measured = await load(plan, program);
      if (round >= 0) {
        figures[index]?.push(measured);
      }
    }
  }
  const [first = []] = figures;
  write(`\na hello of FastAPI, one worker, ${CONNECTIONS} connections\n\n`);
  write(
    table(
      ["", "requests/s", "/ uvicorn", "CPU µs"],
      contenders.map(({ name }, index) => {
        const own = figures[index] ?? [];
        const ratios = own.map((each, at) => each.perSecond / (first[at]?.perSecond ?? Number.NaN));
        return [
          name,
          figure(median(own.map((each) => each.perSecond))),
          figure(median(ratios), 2),
          figure(median(own.map(({ cpuMicros }) => cpuMicros))),
        ];
      }),
    ),
  );
}

async function uvicorn(python: string, ...flags: string[]): Promise<Running & AsyncDisposable> {
  const port = await freePort();
  const args = ["-m", "uvicorn", "--app-dir", fileURLToPath(new URL(".", import.meta.url))];
  const { program } = await Program.start(
    python,
    [...args, "mounted_app:app", "--port", String(port), "--no-access-log", ...flags],
    /running on/,
    { PYTHONPATH: SDK },
  );
  return disposed({ program, port });
}

function disposed(running: Running): Running & AsyncDisposable {
  return { ...running, [Symbol.asyncDispose]: () => running.program[Symbol.asyncDispose]() };
}
