/** Restarts of two nodes, one after the other, behind a balancer: no caller notices. */
import { cpSync } from "node:fs";
import { Agent } from "node:http";
import { expect, it } from "vitest";
import { freePort } from "../../free-port.ts";
import { Program } from "../cli/program.ts";
import { artifact, call, World } from "../hosting/world.ts";
import { newPostgres } from "../start/databases.ts";
import { Folder } from "../start/platform.ts";
import { Balancer } from "./balancer.ts";

/** How often a node is restarted; see CONTRIBUTING.md for the long run. */
const RESTARTS = Number(process.env.TESSERA_RESTARTS ?? 2);

const CALLERS = 16;

/** Longer than the balancer takes to notice. */
const DRAIN_DELAY = "1s";

/** Longer than that: calls are under way when the node begins to drain. */
const LONG_CALL_MS = 2_500;

/** For a restart, with room on a busy machine. */
const RESTART_LIMIT_MS = 60_000;

const LIMIT_MS = 60_000 + RESTARTS * RESTART_LIMIT_MS;

/** Many calls at a time, so that the long ones hold up nobody. */
const CONCURRENT = {
  "api(\n      { input: { text: z.string() }":
    "api(\n      { concurrency: 64, input: { text: z.string() }",
  "forMs: z.int().default(0) }, output: z.string() }":
    "forMs: z.int().default(0) }, output: z.string(), concurrency: 64 }",
};

/** Calls without a break, of every kind; each failure is kept. */
class Callers implements AsyncDisposable {
  count = 0;
  readonly failures: string[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #port: number;
  readonly #callers: Promise<void>[];
  #stopped = false;

  constructor(port: number) {
    this.#port = port;
    this.#callers = Array.from({ length: CALLERS }, (_, index) => this.#callUntilStopped(index));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
    this.#agent.destroy();
  }

  async #callUntilStopped(index: number): Promise<void> {
    for (let round = 0; !this.#stopped; round += 1) {
      if (index === 0) {
        const body = { text: "long", forMs: LONG_CALL_MS };
        await this.#expect("/work", "one long", body);
      } else if ((round + index) % 8 === 0) {
        await this.#task();
      } else {
        await this.#expect("/say", "one hello", { text: "hello" });
      }
    }
  }

  async #task(): Promise<void> {
    const { status, json, text } = await this.#call("/work/submit", { text: "task", forMs: 20 });
    if (status !== 202) {
      this.failures.push(`a submit was answered ${status} ${text}`);
      return;
    }
    await this.#expect(`/work/get?task_id=${json.task_id}&wait=30`, "one task");
  }

  async #expect(path: string, expected: string, body?: object): Promise<void> {
    const { status, text } = await this.#call(path, body);
    if (status !== 200 || text !== expected) {
      this.failures.push(`${path} was answered ${status} ${text}`);
    }
  }

  #call(path: string, body?: object) {
    this.count += 1;
    const started = { port: this.#port } as World["platform"]["started"];
    const options = { agent: this.#agent, ...(body && { body }) };
    return call({ started }, "echo", path, options).catch((err: unknown) => ({
      status: 0,
      text: String(err),
      json: undefined,
    }));
  }
}

it("no call fails while two nodes are restarted in turn behind a balancer", {
  timeout: LIMIT_MS,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const database = await newPostgres();
  const data = [stack.use(new Folder()), stack.use(new Folder())];
  {
    await using world = await World.start({ database });
    await world.deployed("echo", await artifact("echo", CONCURRENT), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
    for (const folder of data) {
      cpSync(world.folder.data, folder.data, { recursive: true });
    }
  }
  const ports = [await freePort(), await freePort()];
  const balancer = stack.use(await Balancer.start(ports));
  const startNode = async (index: number): Promise<Program> => {
    const port = String(ports[index]);
    const folder = data[index]?.data ?? "";
    const args = ["start", "--port", port, "--data", folder, "--drain-delay", DRAIN_DELAY];
    const env = { DATABASE_URL: database, TESSERA_LOG_LEVEL: "warn" };
    const node = stack.use(new Program(args, { env, limitMs: LIMIT_MS }));
    await Promise.race([balancer.sees(ports[index] ?? 0, true), node.ended]);
    return node;
  };
  const nodes = [await startNode(0), await startNode(1)];
  const callers = new Callers(balancer.port);
  const beganMs = performance.now();
  try {
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const index = restart % nodes.length;
      const ended = await nodes[index]?.stop("SIGTERM");
      expect(ended, ended?.stderr).toMatchObject({ code: 0 });
      await balancer.sees(ports[index] ?? 0, false);
      nodes[index] = await startNode(index);
    }
  } finally {
    await callers[Symbol.asyncDispose]();
  }
  const seconds = Math.round((performance.now() - beganMs) / 1_000);
  expect(callers.failures).toEqual([]);
  expect(callers.count).toBeGreaterThan(RESTARTS * 100);
  console.info(`${callers.count} calls in ${seconds} s, ${RESTARTS} restarts, 0 failed`);
});
