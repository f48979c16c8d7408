/**
 * Rounds of faults: tasks are submitted all the time, and in each round the network fails or a
 * process is killed: the node, an agent, or the process of the service. In the end everything is
 * mended, and what became of each acknowledged task is compared with what the runs said.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { WorkerPlace } from "../../../../src/client/index.ts";
import { Random } from "../../../chaos/random.ts";
import { freePort } from "../../../free-port.ts";
import { stripped } from "../../../stripped.ts";
import { Program } from "../../cli/program.ts";
import { type Answer, artifact, call, World } from "../../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "../agent-program.ts";
import { judge, type Outcome, overlapsOf } from "./checker.ts";
import { FaultLedger } from "./ledger.ts";
import { FaultProxy } from "./proxy.ts";

const WITHOUT_FENCE = pathToFileURL(stripped("test/e2e/workers/faults/without-fence.ts")).href;
const AGENTS = 2;
const MAX_WORK_MS = 800;
/** Tasks that outlast the silence limit: how long, and how often one comes, as parts of it. */
const LONG_WORK = { least: 1.2, most: 1.8, interval: 0.5 };
/** How often a fault of the network concerns all agents and not one. */
const ALL_SHARE = 0.3;
const SUBMIT_INTERVAL_MS = 150;
/** For a process that ran a few seconds ago. */
const RECENT_MS = 500;
/** A process lives for so long, and far longer. */
const PROCESS_LIMIT_MS = 6 * 60 * 60_000;

export interface FaultOptions {
  readonly rounds: number;
  readonly seed: number;
  /** After this silence a worker is lost. */
  readonly silenceMs: number;
  /** How long a task may take to end when everything is mended, and those before it have ended. */
  readonly recoveryMs: number;
  /** The one fault of all rounds. Default: any. */
  readonly only?: string;
  /**
   * The agents ignore their fence, so that the checker has something to find: no round follows
   * those after which two runs of a task were at once. Default: false.
   */
  readonly isUnfenced?: boolean;
  onRound?(round: number, fault: string): void;
}

export interface FaultFigures {
  readonly rounds: number;
  readonly faults: { readonly [fault: string]: number };
  readonly acknowledged: number;
  readonly succeeded: number;
  /** Tasks whose worker was lost too often. */
  readonly gaveUp: number;
  readonly runs: number;
  /** Acknowledged tasks that did not end. */
  readonly lost: readonly string[];
  /** Tasks whose end changed, or that say that they ran as no run has. */
  readonly endedTwice: readonly string[];
  /** Tasks with two runs at once. */
  readonly overlaps: readonly string[];
}

/** Runs all rounds. Rejects when a process does not start any more. */
export async function runFaults(options: FaultOptions): Promise<FaultFigures> {
  await using resources = new AsyncDisposableStack();
  const world = await World.start();
  resources.defer(() => world.folder[Symbol.dispose]());
  await world.deploy("faulty", await artifact("faulty"), {
    settings: { place: WorkerPlace.REMOTE },
  });
  const token = await workerToken(world, ["faulty"], PROCESS_LIMIT_MS);
  await world.platform[Symbol.asyncDispose]();
  const port = await freePort();
  const stage = new Stage({
    ...{ options, world, token, port },
    ledger: resources.use(await FaultLedger.start(join(world.folder.path, "ledger"))),
    proxies: await Promise.all(
      Array.from({ length: AGENTS }, async () => resources.use(await FaultProxy.start(port))),
    ),
  });
  resources.use(stage);
  await stage.start();
  const counts: Record<string, number> = {};
  for (let round = 1; round <= options.rounds; round += 1) {
    if (options.isUnfenced && stage.hasOverlap) {
      break;
    }
    const fault = await stage.strike();
    counts[fault] = (counts[fault] ?? 0) + 1;
    options.onRound?.(round, fault);
  }
  return { rounds: options.rounds, faults: counts, ...(await stage.verify()) };
}

interface StageOptions {
  readonly options: FaultOptions;
  readonly world: World;
  readonly token: string;
  readonly port: number;
  readonly ledger: FaultLedger;
  /** One for each agent. */
  readonly proxies: readonly FaultProxy[];
}

class Stage implements AsyncDisposable {
  readonly #stage: StageOptions;
  readonly #random: Random;
  readonly #acknowledged = new Map<string, Outcome | undefined>();
  #node: Program | undefined;
  readonly #agents: Program[] = [];
  #isOver = false;
  #nextLongMs = 0;
  #submitting: Promise<void> = Promise.resolve();

  constructor(stage: StageOptions) {
    this.#stage = stage;
    this.#random = new Random(stage.options.seed);
  }

  async start(): Promise<void> {
    await this.#startNode();
    for (let at = 0; at < AGENTS; at += 1) {
      this.#startAgent(at);
    }
    await Promise.all(this.#agents.map(hasJoined));
    this.#submitting = this.#submitAll();
  }

  /** Causes one fault, and mends it. Returns its name. */
  async strike(): Promise<string> {
    const { proxies, options } = this.#stage;
    const random = this.#random;
    const name = options.only ?? random.pick(Object.keys(this.#faults)) ?? "";
    await this.#faults[name]?.();
    await sleep(random.between(50, 400));
    for (const proxy of proxies) {
      proxy.heal();
    }
    if (name === "silence" && random.chance(0.3)) {
      await sleep(options.silenceMs / 3);
    }
    return name;
  }

  readonly #faults: { readonly [name: string]: () => Promise<void> } = {
    drop: async () => this.#network((proxy) => proxy.drop()),
    delay: async () => {
      const delayMs = this.#random.between(20, 500);
      this.#network((proxy) => proxy.delay(delayMs));
      await sleep(500);
    },
    silence: async () => {
      this.#network((proxy) => proxy.silence());
      await sleep(this.#random.between(100, this.#stage.options.silenceMs * 1.2));
    },
    "silence of one": async () => {
      this.#random.pick(this.#stage.proxies)?.silence();
      await sleep(this.#stage.options.silenceMs * 1.5);
    },
    "half close": async () => this.#network((proxy) => proxy.halfClose()),
    "cut before the answer": async () => {
      this.#network((proxy) => proxy.cutAfterNext());
      await sleep(500);
    },
    "kill the node": async () => {
      await this.#node?.[Symbol.asyncDispose]();
      await sleep(this.#random.between(0, 300));
      await this.#startNode();
    },
    "kill an agent": async () => {
      const at = this.#random.between(0, AGENTS - 1);
      await this.#agents[at]?.[Symbol.asyncDispose]();
      this.#startAgent(at);
    },
    "kill a host": async () => {
      const pid = this.#random.pick(this.#stage.ledger.pids(RECENT_MS));
      try {
        process.kill(pid ?? 0, pid === undefined ? 0 : "SIGKILL");
      } catch {
        // It has just ended.
      }
    },
  };

  /** Does something to the network of one agent, or of all. */
  #network(strike: (proxy: FaultProxy) => void): void {
    const { proxies } = this.#stage;
    const one = this.#random.pick(proxies);
    for (const proxy of this.#random.chance(ALL_SHARE) || one === undefined ? proxies : [one]) {
      strike(proxy);
    }
  }

  /** Two runs of a task have been at once. */
  get hasOverlap(): boolean {
    const { ledger } = this.#stage;
    return [...this.#acknowledged.keys()].some((id) => overlapsOf(ledger.runs(id)).length > 0);
  }

  /** Waits for the end of each task, and compares. */
  async verify() {
    const { ledger, options } = this.#stage;
    this.#isOver = true;
    await this.#submitting;
    const lost: string[] = [];
    const endedTwice: string[] = [];
    const overlaps: string[] = [];
    let runs = 0;
    for (const [taskId, before] of this.#acknowledged) {
      const outcome = await this.#outcome(taskId, performance.now() + options.recoveryMs);
      const all = ledger.runs(taskId);
      runs += all.length;
      const verdict = judge({ taskId, before, outcome, runs: all });
      if (verdict.isLost) {
        lost.push(`${taskId}: ${await this.#said(taskId)}`);
      }
      if (verdict.isEndedTwice) {
        endedTwice.push(`${taskId}: ${before?.text} then ${outcome?.text}`);
      }
      overlaps.push(...verdict.overlapsMs.map((ms) => `${taskId}: ${ms} ms`));
      this.#acknowledged.set(taskId, outcome);
    }
    const outcomes = [...this.#acknowledged.values()];
    return {
      acknowledged: outcomes.length,
      succeeded: outcomes.filter((outcome) => outcome?.kind === "success").length,
      gaveUp: outcomes.filter((outcome) => outcome?.kind === "gave_up").length,
      ...{ runs, lost, endedTwice, overlaps },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#submitting;
    for (const program of [this.#node, ...this.#agents]) {
      await program?.[Symbol.asyncDispose]();
    }
  }

  async #startNode(): Promise<void> {
    const { world, port, options } = this.#stage;
    const node = new Program([String(port), world.folder.data, String(options.silenceMs)], {
      cwd: world.folder.path,
      entry: "../workers/faults/node.ts",
      limitMs: PROCESS_LIMIT_MS,
    });
    this.#node = node;
    await node.says("stdout", /runs on/);
  }

  #startAgent(at: number): void {
    const { world, token, proxies, options } = this.#stage;
    const preload = options.isUnfenced && { NODE_OPTIONS: `--import ${WITHOUT_FENCE}` };
    this.#agents[at] = startAgent(world, {
      ...{ url: proxies[at]?.url ?? "", token, deployment: "faulty" },
      env: { TESSERA_LOG_LEVEL: "error", ...preload },
      limitMs: PROCESS_LIMIT_MS,
    });
  }

  async #submitAll(): Promise<void> {
    const { ledger } = this.#stage;
    while (!this.#isOver) {
      const body = { ledger: ledger.url, forMs: this.#workMs() };
      const answer = await this.#ask("/work/submit", { body });
      const taskId = answer?.json?.task_id;
      if (typeof taskId === "string") {
        this.#acknowledged.set(taskId, undefined);
      }
      await this.#lookAtOne();
      await sleep(SUBMIT_INTERVAL_MS);
    }
  }

  /** How long the next task takes: little, and now and then longer than a worker may be silent. */
  #workMs(): number {
    const { silenceMs } = this.#stage.options;
    const nowMs = performance.now();
    if (nowMs < this.#nextLongMs) {
      return this.#random.between(10, MAX_WORK_MS);
    }
    this.#nextLongMs = nowMs + silenceMs * LONG_WORK.interval;
    const { least, most } = LONG_WORK;
    return this.#random.between(Math.round(silenceMs * least), Math.round(silenceMs * most));
  }

  /** Notes how a task has ended, which must not change. */
  async #lookAtOne(): Promise<void> {
    const open = [...this.#acknowledged].find(([, outcome]) => outcome === undefined);
    const outcome = open && outcomeOf(await this.#ask(`/work/get?task_id=${open[0]}`));
    if (open && outcome) {
      this.#acknowledged.set(open[0], outcome);
    }
  }

  async #outcome(taskId: string, untilMs: number): Promise<Outcome | undefined> {
    for (;;) {
      const outcome = outcomeOf(await this.#ask(`/work/get?task_id=${taskId}&wait=5`));
      if (outcome || performance.now() > untilMs) {
        return outcome;
      }
      await sleep(100);
    }
  }

  /** What the node says of a task that has not ended as it should. */
  async #said(taskId: string): Promise<string> {
    const answers = [
      await this.#ask(`/work/status?task_id=${taskId}`),
      await this.#ask(`/work/get?task_id=${taskId}`),
    ];
    return answers.map((answer) => answer?.text ?? "no answer").join(" ");
  }

  /** Undefined when the node does not answer. */
  async #ask(path: string, options: { body?: object } = {}): Promise<Answer | undefined> {
    const { world, port } = this.#stage;
    const at = { started: { ...world.platform.started, port } };
    return call(at, "faulty", path, options).catch(() => undefined);
  }
}

function outcomeOf(answer: Answer | undefined): Outcome | undefined {
  if (answer?.status === 200) {
    return { kind: "success", text: answer.text };
  }
  // A task that lost as many workers as a task may has failed: it has ended, and says so.
  const reason = answer?.json?.details?.[0]?.debug?.metadata?.failure_reason;
  return reason === "worker_lost" ? { kind: "gave_up", text: reason } : undefined;
}
