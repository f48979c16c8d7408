/**
 * A fuzzer of what workers send, against a real node: hostile services write on their
 * channels what it makes, and neighbours are called all the time. It is seeded.
 * TESSERA_FUZZ_SECONDS and TESSERA_FUZZ_NEIGHBOURS make it longer and fuller, and
 * TESSERA_FUZZ_SEED different; `--reporter verbose` shows the figures.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { residentBytes } from "../../../src/pool/usage.ts";
import { Program } from "../cli/program.ts";
import { type Answer, artifact, call, until, World } from "./world.ts";

const SECONDS = Number(process.env.TESSERA_FUZZ_SECONDS ?? 20);
const NEIGHBOURS = Number(process.env.TESSERA_FUZZ_NEIGHBOURS ?? 3);
const SEED = Number(process.env.TESSERA_FUZZ_SEED ?? 17);
const FUZZERS = 3;
const MEBIBYTE = 1024 ** 2;
/** In which the node compiles what is called often, and its heap finds its size. */
const WARM_SECONDS = Math.min(30, SECONDS / 2);

const MONITOR = new URL("./stall-monitor.ts", import.meta.url).href;
const names = (name: string, count: number) => Array.from({ length: count }, (_, n) => name + n);

class Node implements AsyncDisposable {
  readonly #program: Program;
  readonly #started: Parameters<typeof call>[0];
  #asked = 0;

  constructor(program: Program, started: Parameters<typeof call>[0]) {
    this.#program = program;
    this.#started = started;
  }

  /** `tessera start` in a process of its own, with the deployments. */
  static async start(world: World, limitMs: number): Promise<Node> {
    await world.platform[Symbol.asyncDispose]();
    const { data, path } = world.folder;
    const env = { NODE_OPTIONS: `--import=${MONITOR}` };
    const args = ["start", "--port", "0", "--data", data];
    const program = new Program(args, { cwd: path, env, limitMs });
    const [, port] = await program.says("stdout", / runs on http:\/\/\S+:(\d+)\n/);
    return new Node(program, { started: { ...world.platform.started, port: Number(port) } });
  }

  call(name: string, path: string, body: object): Promise<Answer> {
    return call(this.#started, name, path, { body });
  }

  get memoryBytes(): number {
    return residentBytes(this.#program.pid) ?? 0;
  }

  /** The most processor time that a turn of the event loop has taken since it was last asked. */
  async longestTurnMs(): Promise<number> {
    this.#asked += 1;
    this.#program.send("SIGUSR2");
    const pattern = new RegExp(`^stall ${this.#asked}: (\\S+) ms$`, "m");
    return Number((await this.#program.says("stderr", pattern))[1]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#program[Symbol.asyncDispose]();
  }
}

test(
  "nothing that services send ends their node, holds it up or fills it, and no call of a neighbour fails",
  async ({ annotate }) => {
    await using world = await World.start();
    const fuzzers = names("fuzzer", FUZZERS);
    const neighbours = names("neighbour", NEIGHBOURS);
    for (const name of [...fuzzers, ...neighbours]) {
      const built = await artifact(name.startsWith("fuzzer") ? "fuzzer" : "echo");
      await world.deployed(name, built, { settings: { minWorkers: 1, maxWorkers: 1 } });
    }
    await using node = await Node.start(world, SECONDS * 1_000 + 120_000);
    for (const name of neighbours) {
      const say = () => node.call(name, "/say", { text: "hello" });
      await until(say, ({ status }) => status === 200);
    }
    const endMs = performance.now() + SECONDS * 1_000;
    const warmMs = endMs - (SECONDS - WARM_SECONDS) * 1_000;
    let calls = 0;
    let hostile = 0;
    const fuzz = async (name: string, first: number): Promise<void> => {
      for (let seed = first; performance.now() < endMs; seed += 1_000) {
        // It fails when its worker ends, or has what the worker forged for it.
        await node.call(name, "/fuzz", { seed });
        hostile += 1;
      }
    };
    const live = async (name: string): Promise<void> => {
      for (let turn = 0; performance.now() < endMs; turn += 1) {
        const said = `${name} ${turn}`;
        const { status, text } = await node.call(name, "/say", { text: said });
        expect([status, text]).toEqual([200, `one ${said}`]);
        calls += 1;
      }
    };
    const measure = async () => {
      await sleep(warmMs - performance.now());
      const longestMs = [];
      await node.longestTurnMs();
      const heldBytes = node.memoryBytes;
      let peakBytes = 0;
      while (performance.now() < endMs) {
        await sleep(500);
        peakBytes = Math.max(peakBytes, node.memoryBytes);
        longestMs.push(await node.longestTurnMs());
      }
      return { heldBytes, peakBytes, endBytes: node.memoryBytes, longestMs };
    };
    const [measured] = await Promise.all([
      measure(),
      ...fuzzers.map((name, index) => fuzz(name, SEED + index * 7_919)),
      ...neighbours.map(live),
    ]);
    const mebibytes = (bytes: number): string => `${Math.round(bytes / MEBIBYTE)} MiB`;
    const longestMs = Math.max(...measured.longestMs);
    await annotate(
      `${hostile} hostile calls, ${calls} of ${NEIGHBOURS} neighbours, ` +
        `longest turn ${longestMs.toFixed(1)} ms, memory ${mebibytes(measured.heldBytes)} warm, ` +
        `${mebibytes(measured.peakBytes)} at most, ${mebibytes(measured.endBytes)} in the end`,
    );
    expect(hostile).toBeGreaterThan(SECONDS / 10);
    expect(calls).toBeGreaterThan(SECONDS);
    expect(longestMs).toBeLessThan(50);
    expect(measured.endBytes - measured.heldBytes).toBeLessThan(64 * MEBIBYTE);
    for (const name of fuzzers) {
      const answer = () => node.call(name, "/alive", {});
      await until(answer, ({ status }) => status === 200);
    }
  },
  SECONDS * 1_000 + 180_000,
);
