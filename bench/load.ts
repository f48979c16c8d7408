/**
 * A load generator that writes raw sockets, so that it is never the limit:
 * requests are prepared text, answers are read just far enough to know where
 * they end. Run as a process of its own: `node bench/load.ts <json>`; it
 * prints one line of JSON.
 *
 * A lifecycle is a submit followed by a get that waits for the end, on one
 * keep-alive connection.
 */
import { connect, type Socket } from "node:net";

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly lifecycles: number;
  /** Endpoint that is submitted to. */
  readonly endpoint: string;
}

export interface LoadResult {
  readonly lifecycles: number;
  readonly failed: number;
  readonly seconds: number;
  /** Of submits and of whole lifecycles, in milliseconds. */
  readonly submitMs: { readonly p50: number; readonly p99: number };
  readonly lifecycleMs: { readonly p50: number; readonly p99: number };
  /** CPU time of the generator, in seconds. */
  readonly cpuSeconds: number;
}

/** Sends requests one after the other over one connection. */
class Connection {
  readonly #socket: Socket;
  #buffer = "";
  #waiting: ((response: { status: number; body: string }) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      this.#buffer += chunk;
      this.#read();
    });
  }

  request(text: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#socket.write(text, "latin1");
    });
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(): void {
    const headEnd = this.#buffer.indexOf("\r\n\r\n");
    if (headEnd < 0) {
      return;
    }
    const head = this.#buffer.slice(0, headEnd).toLowerCase();
    const lengthAt = head.indexOf("content-length: ");
    const length = lengthAt < 0 ? 0 : Number.parseInt(head.slice(lengthAt + 16), 10);
    const end = headEnd + 4 + length;
    if (this.#buffer.length < end) {
      return;
    }
    const body = this.#buffer.slice(headEnd + 4, end);
    this.#buffer = this.#buffer.slice(end);
    this.#waiting?.({ status: Number(head.slice(9, 12)), body });
  }
}

function open(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.once("error", reject);
    socket.once("connect", () => resolve(new Connection(socket)));
  });
}

export async function runLoad({
  port,
  connections,
  lifecycles,
  endpoint,
}: LoadPlan): Promise<LoadResult> {
  const body = "{}";
  const submit =
    `POST /${endpoint}/submit HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`;
  const all = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const submitTimes: number[] = [];
  const lifecycleTimes: number[] = [];
  let begun = 0;
  let failed = 0;
  const start = performance.now();
  const cpuBefore = process.cpuUsage();
  await Promise.all(
    all.map(async (connection) => {
      while (begun < lifecycles) {
        begun += 1;
        const t0 = performance.now();
        const submitted = await connection.request(submit);
        const t1 = performance.now();
        const taskId = submitted.body.slice(12, 48);
        const got = await connection.request(
          `GET /${endpoint}/get?task_id=${taskId}&wait=30 HTTP/1.1\r\nhost: localhost\r\n\r\n`,
        );
        const t2 = performance.now();
        if (submitted.status !== 202 || got.status !== 200) {
          failed += 1;
        }
        submitTimes.push(t1 - t0);
        lifecycleTimes.push(t2 - t0);
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  for (const connection of all) {
    connection.end();
  }
  return {
    lifecycles,
    failed,
    seconds,
    submitMs: percentiles(submitTimes),
    lifecycleMs: percentiles(lifecycleTimes),
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}

function percentiles(values: number[]): { p50: number; p99: number } {
  const sorted = values.sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? "{}") as LoadPlan;
  process.stdout.write(`${JSON.stringify(await runLoad(plan))}\n`);
}
