/**
 * The load generator, a process of its own: `node bench/load.ts <json>` prints
 * one line of JSON. It writes prepared text to raw sockets, so that it is not
 * what is measured; its CPU time is part of the result.
 *
 * A lifecycle is a submit followed by a get that waits for the end. The
 * function of every contender returns the monotonic clock at its start. All
 * processes of a machine share that clock, so the time from a submit's first
 * byte to the start of the work is known.
 *
 * With `perSecond` the load is open: submits are sent at fixed times whether or
 * not earlier ones were answered, and their latency counts from when they were
 * due, so a stalling server cannot hide it (no coordinated omission).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "./connection.ts";

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly endpoint: string;
  /** Of a platform: `organization/name`. Default: the only one of `tessera serve`. */
  readonly deployment?: string;
  /** `submit` does not ask for results. Default `lifecycle`. */
  readonly kind?: "lifecycle" | "submit";
  /** The run stops after this many, or after `seconds`. Default 30,000 when neither is given. */
  readonly lifecycles?: number;
  readonly seconds?: number;
  /**
   * Submits come in lists of this many calls, which start in their order: a list is over when its
   * last call is. Default 1, by the paths of the endpoint.
   */
  readonly list?: number;
  /** An open load of this many submits per second. */
  readonly perSecond?: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

export interface LoadResult {
  readonly done: number;
  readonly failed: number;
  /** The first unexpected response. */
  readonly failure: string | undefined;
  readonly seconds: number;
  /** In milliseconds. */
  readonly submitMs: Percentiles;
  readonly lifecycleMs: Percentiles;
  /** From the submit's first byte to the start of the function; undefined where none runs. */
  readonly startMs: Percentiles | undefined;
  /** CPU time of the generator, in seconds. */
  readonly cpuSeconds: number;
}

/** The monotonic clock that all processes of the machine share, at a tenth of what `hrtime` costs. */
const originMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
const nowMs = (): number => originMs + performance.now();

class Load {
  readonly #plan: LoadPlan;
  readonly #submit: string;
  /** The headers of every request. */
  readonly #headers: string;
  readonly #submitTimes: number[] = [];
  readonly #lifecycleTimes: number[] = [];
  readonly #startTimes: number[] = [];
  #done = 0;
  #failed = 0;
  #failure: string | undefined;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    const named = plan.deployment === undefined ? "" : `tessera-deployment: ${plan.deployment}\r\n`;
    this.#headers = `host: localhost\r\n${named}`;
    const { endpoint, list = 1 } = plan;
    this.#submit =
      list === 1
        ? this.#post(`/${endpoint}/submit`, "{}")
        : this.#post(
            "/api/v1/tasks:batchSubmit",
            JSON.stringify({ tasks: Array.from({ length: list }, () => ({ endpoint })) }),
          );
  }

  async run(): Promise<LoadResult> {
    const { connections, port, perSecond } = this.#plan;
    const open = await Promise.all(
      Array.from({ length: connections }, () => Connection.open(port)),
    );
    const startMs = nowMs();
    const cpuBefore = process.cpuUsage();
    await (perSecond === undefined ? this.#closed(open) : this.#open(open, perSecond));
    const seconds = (nowMs() - startMs) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    for (const connection of open) {
      connection.end();
    }
    return {
      done: this.#done,
      failed: this.#failed,
      failure: this.#failure,
      seconds,
      submitMs: percentiles(this.#submitTimes),
      lifecycleMs: percentiles(this.#lifecycleTimes),
      startMs: this.#startTimes.length > 0 ? percentiles(this.#startTimes) : undefined,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  }

  /** Closed load: every connection starts the next lifecycle as soon as its last has ended. */
  async #closed(connections: readonly Connection[]): Promise<void> {
    const { seconds = Number.POSITIVE_INFINITY } = this.#plan;
    const { lifecycles = seconds < Number.POSITIVE_INFINITY ? seconds * 1e6 : 30_000 } = this.#plan;
    const endMs = nowMs() + seconds * 1000;
    let begun = 0;
    await Promise.all(
      connections.map(async (connection) => {
        while (begun < lifecycles && nowMs() < endMs) {
          begun += 1;
          await this.#one(connection, nowMs());
        }
      }),
    );
  }

  /** Open load: submits at fixed times, each on a free connection. */
  async #open(connections: readonly Connection[], perSecond: number): Promise<void> {
    const free = [...connections];
    const due: number[] = [];
    const underWay = new Set<Promise<void>>();
    const begin = (connection: Connection, dueMs: number): void => {
      const one = this.#one(connection, dueMs).finally(() => {
        underWay.delete(one);
        const next = due.shift();
        if (next === undefined) {
          free.push(connection);
        } else {
          begin(connection, next);
        }
      });
      underWay.add(one);
    };
    const startMs = nowMs();
    const total = (this.#plan.seconds ?? 10) * perSecond;
    for (let sent = 0; sent < total; ) {
      for (; sent < total && startMs + (sent * 1000) / perSecond <= nowMs(); sent += 1) {
        const dueMs = startMs + (sent * 1000) / perSecond;
        const connection = free.pop();
        if (connection) {
          begin(connection, dueMs);
        } else {
          due.push(dueMs);
        }
      }
      await sleep(1);
    }
    while (underWay.size > 0) {
      await Promise.all(underWay);
    }
  }

  async #one(connection: Connection, beginMs: number): Promise<void> {
    const submitted = await connection.request(this.#submit);
    this.#submitTimes.push(nowMs() - beginMs);
    const { list = 1 } = this.#plan;
    this.#done += list;
    const isTaken =
      list === 1 ? submitted.status === 202 : submitted.body.includes(`"accepted":${list}`);
    this.#check(isTaken, submitted);
    // One task is answered as {"task_id":"…, and a list ends with its last one.
    const at = submitted.body.lastIndexOf('"task_id":"') + 11;
    const taskId = submitted.body.slice(at, submitted.body.indexOf('"', at));
    if (this.#plan.kind === "submit") {
      return;
    }
    const got = await connection.request(
      `GET /${this.#plan.endpoint}/get?task_id=${taskId}&wait=30 HTTP/1.1\r\n${this.#headers}\r\n`,
    );
    this.#lifecycleTimes.push(nowMs() - beginMs);
    this.#check(got.status === 200, got);
    if (got.body !== "null") {
      this.#startTimes.push(Number(got.body) - beginMs);
    }
  }

  #post(path: string, body: string): string {
    return (
      `POST ${path} HTTP/1.1\r\n${this.#headers}` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    );
  }

  #check(good: boolean, { status, body }: { status: number; body: string }): void {
    if (!good) {
      this.#failed += 1;
      this.#failure ??= `${status} ${body.slice(0, 300)}`;
    }
  }
}

export function percentiles(values: number[]): Percentiles {
  const sorted = values.sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? "{}") as LoadPlan;
  process.stdout.write(`${JSON.stringify(await new Load(plan).run())}\n`);
}
