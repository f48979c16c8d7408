/**
 * The fuzzer against a real node: hostile services write on the channel to their node
 * while neighbours are called. It is seeded; CONTRIBUTING.md says how to make it longer.
 */
import { Agent } from "node:http";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { residenceOf } from "../../../src/pool/usage.ts";
import { Program } from "../cli/program.ts";
import { type Answer, artifact, type CallOptions, call, until, World } from "./world.ts";

const SECONDS = Number(process.env.TESSERA_FUZZ_SECONDS ?? 5);

/** What deploying and the end may take besides, on a busy machine. */
const SET_UP_SECONDS = 600;
const SEED = Number(process.env.TESSERA_FUZZ_SEED ?? 17);
const NEIGHBOURS = Number(process.env.TESSERA_FUZZ_NEIGHBOURS ?? 2);
const HOSTILE = Number(process.env.TESSERA_FUZZ_HOSTILE ?? 2);
/** What the node is given to grow to its ordinary size, under both loads. */
const WARM_MS = Math.max(3_000, SECONDS * 100);
/** Things that one call of a hostile service generates. */
const BATCH = 200;
/** Of so many calls of a hostile service, one ends its worker. */
const CALLS_PER_STRIKE = 3;
const PAUSE_MS = 20;
/** Of the log of a node that did not stop as it should. */
const MAX_SHOWN_CHARACTERS = 4_000;
const MEBIBYTE = 1024 ** 2;
const STALLS = fileURLToPath(new URL("stalls.ts", import.meta.url));

type Ask = (deployment: string, path: string, options?: CallOptions) => Promise<Answer>;

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

/** Attacks until it is told to stop. Returns how much of it its workers survived, and what ended them. */
async function attack(ask: Ask, name: string, seed: number, signal: AbortSignal) {
  const sent = { harmless: 0, deadly: 0 };
  for (let number = 1; !signal.aborted; number++) {
    const body = { seed: seed + number * HOSTILE, count: BATCH };
    const strikes = number % CALLS_PER_STRIKE === 0;
    const { status, json } = await ask(name, strikes ? "/strike" : "/attack", { body });
    if (status === 503) {
      // Its next worker starts.
      number--;
      await pause();
    } else if (strikes) {
      sent.deadly += status === 200 ? 0 : 1;
    } else {
      sent.harmless += status === 200 ? json : 0;
    }
  }
  return sent;
}

/** Calls until it is told to stop. Returns the number of calls, and what the failed ones answered. */
async function load(ask: Ask, name: string, signal: AbortSignal) {
  using agent = new KeptAlive();
  const failed: string[] = [];
  let calls = 0;
  while (!signal.aborted) {
    const { status, text } = await ask(name, "/say", { body: { text: "x" }, agent });
    calls++;
    if (status !== 200 || text !== "one x") {
      failed.push(`${status} ${text}`);
    }
    await pause();
  }
  return { calls, failed };
}

class KeptAlive extends Agent implements Disposable {
  constructor() {
    super({ keepAlive: true });
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}

/** The largest memory of the node until it is told to stop. */
async function watchMemory(pid: number, signal: AbortSignal): Promise<number> {
  let largestBytes = 0;
  while (!signal.aborted) {
    largestBytes = Math.max(largestBytes, residenceOf(pid)?.bytes ?? 0);
    await pause();
  }
  return largestBytes;
}

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, number) => `${prefix}-${number}`);

it(
  "a node that hostile services send whatever they like goes on, and their neighbours notice nothing",
  async () => {
    const hostile = names("fuzzing", HOSTILE);
    const neighbours = names("echo", NEIGHBOURS);
    await using world = await World.start();
    const settings = { minWorkers: 1, maxWorkers: 1 };
    await Promise.all(
      [...hostile, ...neighbours].map(async (name) =>
        world.deployed(name, await artifact(name.split("-", 1)[0]), { settings }),
      ),
    );
    await world.platform[Symbol.asyncDispose]();
    await using program = new Program(
      ["start", "--port", "0", "--data", world.folder.data, "--drain-time", "1s"],
      {
        cwd: world.folder.path,
        env: { NODE_OPTIONS: `--import ${STALLS}` },
        limitMs: (SECONDS + SET_UP_SECONDS) * 1_000,
      },
    );
    const [, port] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
    const node = { started: { ...world.platform.started, port: Number(port) } };
    const ask: Ask = (name, path, options) => call(node, name, path, options);
    const served = ({ status }: Answer) => status === 200;
    for (const name of neighbours) {
      await until(() => ask(name, "/say", { body: { text: "x" } }), served);
    }
    for (const name of hostile) {
      await until(() => ask(name, "/attack", { body: { seed: SEED, count: 1 } }), served);
    }

    const end = AbortSignal.timeout(WARM_MS + SECONDS * 1_000);
    const attacks = hostile.map((name, number) => attack(ask, name, SEED + number, end));
    const loads = neighbours.map((name) => load(ask, name, end));
    const warmBytes = await watchMemory(program.pid, AbortSignal.timeout(WARM_MS));
    program.send("SIGUSR2");
    const [, keptWarm] = await program.says("stdout", /keeps (\d+) bytes/);
    const warmOutput = program.stdout.length;
    const grownBytes = (await watchMemory(program.pid, end)) - warmBytes;
    const sent = await Promise.all(attacks);
    const called = await Promise.all(loads);
    program.send("SIGUSR2");
    const [, keptAfter] = await program.says("stdout", /keeps[\s\S]*keeps (\d+) bytes/);
    const keptBytes = Number(keptAfter) - Number(keptWarm);

    const busyMs = [...program.stdout.slice(warmOutput).matchAll(/busy for ([\d.]+) ms/g)];
    const longestMs = Math.max(...busyMs.map(([, ms]) => Number(ms)));
    const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
    const figures = {
      harmless: sum(sent.map(({ harmless }) => harmless)),
      deadly: sum(sent.map(({ deadly }) => deadly)),
      calls: sum(called.map(({ calls }) => calls)),
      failed: called.flatMap(({ failed }) => failed).slice(0, 5),
      longestMs,
      keptMebibytes: Math.round(keptBytes / MEBIBYTE),
      // With garbage, and with what V8 has reserved.
      residentMebibytes: Math.round(grownBytes / MEBIBYTE),
    };
    console.log(figures);
    expect(figures.failed).toEqual([]);
    expect(figures.harmless).toBeGreaterThan(10 * SECONDS);
    expect(figures.deadly).toBeGreaterThan(0);
    expect(busyMs.length).toBeGreaterThan(0);
    expect(longestMs).toBeLessThan(50);
    expect(keptBytes).toBeLessThan(64 * MEBIBYTE);
    const { code, stderr } = await program.stop();
    if (code !== 0) {
      // Seen on one machine, and what held it up is not known: it says what was open.
      console.warn(stderr.slice(-MAX_SHOWN_CHARACTERS));
    }
    expect(code === 0 || stderr.includes("it has not stopped after 21 s")).toBe(true);
  },
  (SECONDS + SET_UP_SECONDS) * 1_000,
);
