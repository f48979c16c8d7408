/**
 * Benchmark of workers that join from another machine, beside the node's own: the same
 * platform with the same deployment once with a local worker and once with `tessera worker`,
 * over loopback. Measures lifecycles one by one and in lists, an open load, how fast an abort
 * arrives, and what an idle worker says.
 */
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { countByThread, questionsBetween } from "./idle.ts";
import { type LoadPlan, type Percentiles, percentiles } from "./load.ts";
import { load, Program } from "./program.ts";
import { figure, median, table } from "./table.ts";

const DEPLOYMENT = "acme/noop-1";
const HEADERS = { "tessera-deployment": DEPLOYMENT, "content-type": "application/json" };
const CONNECTIONS = 64;

/** Calls of a list, and connections that submit lists. */
const LIST = { list: 100, connections: 8 };
const PER_SECOND = 1_000;

/** What a worker does at its start is over by then. */
const SETTLE_MS = 10_000;

/** Two messages closer together than this are one: TCP cuts where it likes. */
const SAME_MESSAGE_MS = 50;

export interface RemoteOptions {
  readonly folder: string;
  /** Creates a fresh database. */
  readonly fresh: (name: string) => Promise<string>;
  readonly rounds: number;
  readonly seconds: number;
  readonly aborts: number;
  readonly idleSeconds: number;
}

interface Place {
  readonly name: string;
  readonly port: number;
  /** The node, and what joined it. */
  readonly pids: readonly number[];
  readonly perSecond: number[];
  readonly listedPerSecond: number[];
  /** CPU time of the node and what joined it, for one lifecycle. */
  readonly cpuMicros: number[];
  readonly listedCpuMicros: number[];
  readonly startMs: Percentiles[];
  readonly lifecycleMs: Percentiles[];
  readonly abortMs: number[];
}

export async function benchRemote(
  { folder, fresh, rounds, seconds, aborts, idleSeconds }: RemoteOptions,
  write: (text: string) => void,
): Promise<void> {
  await using local = await startNode(await fresh("local"), folder, "local");
  await using remote = await startNode(await fresh("remote"), folder, "remote");
  await using agent = await startAgent(remote.port, remote.token, folder);
  const places = [
    place("local worker", local.port, [local.program.pid]),
    place("remote worker", remote.port, [remote.program.pid, agent.pid]),
  ];
  for (const { port } of places) {
    await answers(port);
    await load({ ...plan(port), seconds: 2 });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const each of places) {
      const closed = await load({ ...plan(each.port), seconds }, each.pids);
      each.perSecond.push(closed.perSecond);
      each.cpuMicros.push(closed.cpuMicros);
      const listed = await load({ ...plan(each.port), ...LIST, seconds }, each.pids);
      each.listedPerSecond.push(listed.perSecond);
      each.listedCpuMicros.push(listed.cpuMicros);
      const open = await load({ ...plan(each.port), perSecond: PER_SECOND, seconds });
      each.lifecycleMs.push(open.lifecycleMs);
      each.startMs.push(open.startMs ?? { p50: Number.NaN, p99: Number.NaN });
      each.abortMs.push(...(await abortTimes(each.port, Math.ceil(aborts / rounds))));
    }
  }
  write(
    `\n${CONNECTIONS} connections; lists of ${LIST.list} calls over ${LIST.connections} connections; an open load of ${PER_SECOND} submits/s; ${aborts} aborts one after the other\n\n`,
  );
  write(
    table(
      [
        ...[
          "",
          "lifecycles/s",
          "CPU µs",
          "calls/s in lists",
          "CPU µs",
          "start p50 ms",
          "p99",
          "lifecycle p50 ms",
          "p99",
        ],
        ...["abort p50 ms", "p99"],
      ],
      places.map((each) => [
        each.name,
        figure(median(each.perSecond)),
        figure(median(each.cpuMicros)),
        figure(median(each.listedPerSecond)),
        figure(median(each.listedCpuMicros)),
        figure(median(each.startMs.map(({ p50 }) => p50)), 2),
        figure(median(each.startMs.map(({ p99 }) => p99)), 2),
        figure(median(each.lifecycleMs.map(({ p50 }) => p50)), 2),
        figure(median(each.lifecycleMs.map(({ p99 }) => p99)), 2),
        figure(percentiles(each.abortMs).p50, 2),
        figure(percentiles(each.abortMs).p99, 2),
      ]),
    ),
  );
  await agent[Symbol.asyncDispose]();
  await idle({ remote, local: local.program, folder, seconds: idleSeconds }, write);
}

const place = (name: string, port: number, pids: readonly number[]): Place => ({
  ...{ name, port, pids, perSecond: [], listedPerSecond: [], cpuMicros: [], listedCpuMicros: [] },
  ...{ startMs: [], lifecycleMs: [], abortMs: [] },
});

const plan = (port: number): Omit<LoadPlan, "seconds"> => ({
  port,
  connections: CONNECTIONS,
  endpoint: "noop",
  deployment: DEPLOYMENT,
});

async function startNode(database: string, folder: string, name: "local" | "remote") {
  const file = fileURLToPath(new URL("hosting.ts", import.meta.url));
  const counter = new URL("count-messages.ts", import.meta.url).href;
  const data = join(folder, `node-${name}`);
  const { program, match } = await Program.start(
    process.execPath,
    ["--import", counter, file, database, data, "1", name],
    /port (\d+ token \S+) ready\n/,
  );
  const [port = "", , token = ""] = match.split(" ");
  return {
    ...{ program, port: Number(port), token },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

async function startAgent(port: number, token: string, folder: string): Promise<Program> {
  const { program } = await Program.start(
    process.execPath,
    [
      fileURLToPath(new URL("../bin/tessera.js", import.meta.url)),
      ...["worker", "--join", `http://127.0.0.1:${port}`, "--deployment", "noop-1"],
      ...["--data", mkdtempSync(join(folder, "agent-"))],
    ],
    /(joined) http/,
    { TESSERA_WORKER_TOKEN: token },
  );
  return program;
}

/** Resolves when the deployment answers. */
async function answers(port: number): Promise<void> {
  for (;;) {
    const { ok } = await call(port, "POST", "/echo", "{}");
    if (ok) {
      return;
    }
    await sleep(100);
  }
}

function call(port: number, method: string, path: string, body?: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: HEADERS,
    ...(body && { body }),
  });
}

/** From before the request of a cancel until the function hears of it, in milliseconds. */
async function abortTimes(port: number, count: number): Promise<number[]> {
  const sentMs = new Map<string, number>();
  for (let number = 0; number < count; number += 1) {
    const submitted = await call(port, "POST", "/aborted/submit", "{}");
    const { task_id: id } = (await submitted.json()) as { task_id: string };
    await isRunning(port, id);
    sentMs.set(id, Number(process.hrtime.bigint()) / 1e6);
    const cancelled = await call(port, "POST", `/aborted/cancel?task_id=${id}&abort=true`);
    if (!cancelled.ok) {
      throw new Error(`cancel: ${cancelled.status} ${await cancelled.text()}`);
    }
  }
  for (;;) {
    const heard = await call(port, "POST", "/aborts", "{}");
    const heardMs = (await heard.json()) as Record<string, number>;
    if ([...sentMs.keys()].every((id) => id in heardMs)) {
      return [...sentMs].map(([id, ms]) => (heardMs[id] ?? Number.NaN) - ms);
    }
    await sleep(50);
  }
}

async function isRunning(port: number, id: string): Promise<void> {
  for (;;) {
    const answer = await call(port, "GET", `/aborted/status?task_id=${id}`);
    const { status } = (await answer.json()) as { status: string };
    if (status === "running") {
      return;
    }
    await sleep(5);
  }
}

interface Idle {
  readonly remote: Awaited<ReturnType<typeof startNode>>;
  readonly local: Program;
  readonly folder: string;
  readonly seconds: number;
}

/** What a worker without calls sends and gets, and what it costs its node's database. */
async function idle(
  { remote, local, folder, seconds }: Idle,
  write: (text: string) => void,
): Promise<void> {
  await using relay = await Relay.start(remote.port);
  await using _agent = await startAgent(relay.port, remote.token, folder);
  await sleep(SETTLE_MS);
  const before = [await countByThread(local), await countByThread(remote.program)] as const;
  const said = { ...relay.messages };
  await sleep(seconds * 1000);
  const after = [await countByThread(local), await countByThread(remote.program)] as const;
  const parts = seconds / 5;
  const per = (count: number): string => figure(count / parts, 2);
  const ofLocal = questionsBetween(before[0], after[0], parts).join(", ");
  const ofRemote = questionsBetween(before[1], after[1], parts).join(", ");
  write(
    `\nidle for ${seconds} s, in 5 s: ${per(relay.messages.up - said.up)} messages of the worker, ` +
      `${per(relay.messages.down - said.down)} of the node\n` +
      `questions to the database: ${ofRemote}\nwith a local worker: ${ofLocal}\n`,
  );
}

/** Between an agent and its node; counts what passes. */
class Relay implements AsyncDisposable {
  readonly messages = { up: 0, down: 0 };
  readonly #server;
  readonly #lastMs = { up: 0, down: 0 };

  static async start(target: number): Promise<Relay> {
    const relay = new Relay(target);
    relay.#server.listen(0, "127.0.0.1");
    await once(relay.#server, "listening");
    return relay;
  }

  private constructor(target: number) {
    this.#server = createServer({ noDelay: true }, (near) => {
      const far = connect({ port: target, host: "127.0.0.1", noDelay: true });
      near.on("data", () => this.#passes("up")).on("error", () => far.destroy());
      far.on("data", () => this.#passes("down")).on("error", () => near.destroy());
      near.pipe(far).pipe(near);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }

  #passes(way: "up" | "down"): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs[way] > SAME_MESSAGE_MS) {
      this.messages[way] += 1;
    }
    this.#lastMs[way] = nowMs;
  }
}
