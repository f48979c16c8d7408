/**
 * Benchmark of deployments at rest: how soon a node that begins anew has all of them ready, what
 * they take of it, and how long the first call of one takes. It prints CPU time, too, which other
 * load on the machine does not change.
 */
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { countByThread, questionsBetween } from "./idle.ts";
import { cpuSecondsOf, memoryOf, Program, processesOf } from "./program.ts";
import { figure } from "./table.ts";

const SETTLE_MS = 10_000;
const POLL_MS = 100;
const FIRST_CALLS = 5;

interface SleepingOptions {
  readonly database: string;
  /** The data folder. */
  readonly data: string;
  readonly deployments: number;
  readonly seconds: number;
}

export async function benchSleeping(
  { database, data, deployments, seconds }: SleepingOptions,
  write: (text: string) => void,
): Promise<void> {
  const path = (file: string): string => new URL(file, import.meta.url).pathname;
  const args = [path("fill-sleeping.ts"), database, data, String(deployments)];
  const filled = await Program.start(process.execPath, args, /token (\S+)\n/);
  await filled.program[Symbol.asyncDispose]();
  const headers = { authorization: `Bearer ${filled.match}` };

  const beganMs = performance.now();
  const { program, match: port } = await Program.start(
    process.execPath,
    [
      ...["--import", path("count-messages.ts"), path("../bin/tessera.js")],
      ...["start", "--port", "0", "--data", data],
    ],
    /http:\/\/(?:localhost|127\.0\.0\.1):(\d+)/,
    { DATABASE_URL: database },
  );
  await using _node = program;
  for (;;) {
    const ready = await readyOf(Number(port), headers);
    if (ready >= deployments) {
      break;
    }
    await sleep(POLL_MS);
  }
  const readyS = (performance.now() - beganMs) / 1_000;
  const readyCpuS = cpuSecondsOf([program.pid]);
  const mostMib = memoryOf(program.pid);
  await sleep(SETTLE_MS);
  const sqlite = !/^postgres/.test(database);
  const before = sqlite ? await countByThread(program) : undefined;
  const cpuBefore = cpuSecondsOf([program.pid]);
  await sleep(seconds * 1_000);
  const cpu = ((cpuSecondsOf([program.pid]) - cpuBefore) / seconds) * 100;
  const questions =
    before === undefined ? [] : questionsBetween(before, await countByThread(program), seconds);
  const workers = processesOf(program.pid) - 1;
  const restMib = memoryOf(program.pid);
  const calls: number[] = [];
  for (let number = 1; number <= Math.min(FIRST_CALLS, deployments - 1); number++) {
    calls.push(await firstCall(Number(port), `sleeping-${number}`, headers));
  }
  write(
    `\n${deployments} deployments at rest: ready after ${figure(readyS, 1)} s and ${figure(readyCpuS, 1)} s of CPU, ` +
      `${figure(mostMib, 0)} MiB then and ${figure(restMib, 0)} MiB at rest, ${workers} processes of workers, ` +
      `${figure(cpu, 1)} % of a core at rest; first calls ${calls.map((ms) => `${figure(ms, 0)} ms`).join(", ")}\n` +
      (questions.length > 0 ? `asked each second: ${questions.join(", ")}\n` : ""),
  );
}

async function readyOf(port: number, headers: Record<string, string>): Promise<number> {
  let ready = 0;
  let token = "";
  do {
    const query = new URLSearchParams({ page_size: "200", ...(token && { page_token: token }) });
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/deployments?${query}`, { headers });
    const page = (await answer.json()) as {
      readonly deployments: readonly { readonly status: string }[];
      readonly next_page_token?: string;
    };
    ready += page.deployments.filter(({ status }) => status === "ready").length;
    token = page.next_page_token ?? "";
  } while (token !== "");
  return ready;
}

/** How long a call takes that a worker starts for. */
function firstCall(port: number, name: string, headers: Record<string, string>): Promise<number> {
  const beganMs = performance.now();
  const host = `${name}.acme.apps.localhost:${port}`;
  return new Promise((resolve, reject) => {
    const call = request(
      {
        ...{ host: "127.0.0.1", port, path: "/echo", method: "POST" },
        headers: { ...headers, host, "content-type": "application/json" },
      },
      (answer) => {
        answer.resume().once("end", () => {
          const { statusCode } = answer;
          if (statusCode === 200) {
            resolve(performance.now() - beganMs);
          } else {
            reject(new Error(`${name} answered ${statusCode}`));
          }
        });
      },
    );
    call.once("error", reject).end("{}");
  });
}
