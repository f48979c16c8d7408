/**
 * How long tasks wait that a killed node was running, until their next attempt begins; with the
 * nodes on one core that busy loops share.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, isDefinite, parsed } from "./client.ts";
import { Ledger, type Run } from "./ledger.ts";
import { ChaosNode, serving } from "./node.ts";
import { Random } from "./random.ts";
import type { ChaosDatabase } from "./run.ts";

/** Tasks that run when a node is killed: fewer than two nodes have slots. */
const TASKS = 8;
/** How long each of them would run. */
const HOLD_MS = 300_000;
const AGAIN_MS = 20;
/** Nodes are left alone so long after a start: only then do they judge each other's sessions. */
const SETTLE_MS = 20_000;
/** Longest further pause before a kill: one interval of maintenance. */
const MAX_PAUSE_MS = 5_000;
/** Longer than a lease and the start of a starved node together. */
const MAX_RESTART_MS = 180_000;
/** The core that nodes and busy loops share. */
const CORE = "0";

export interface RestartsOptions {
  readonly database: ChaosDatabase;
  readonly kills: number;
  /** Busy loops beside the nodes, of the same priority. */
  readonly loops: number;
  readonly seed: number;
  /** Told after each kill, in milliseconds. */
  onKill(restartsMs: readonly number[], readyMs: number): void;
}

/** The time of each restart, in milliseconds. */
export async function restarts(options: RestartsOptions): Promise<readonly number[]> {
  const { database, kills, loops, seed } = options;
  const random = new Random(seed);
  await using stack = new AsyncDisposableStack();
  const ledger = stack.use(await Ledger.start());
  const nodes: ChaosNode[] = [];
  for (const url of database.urls) {
    nodes.push(stack.use(await ChaosNode.create(serving(url), { under: ["taskset", "-c", CORE] })));
  }
  for (let loop = 0; loop < loops; loop += 1) {
    const busy = spawnLoop();
    stack.defer(() => void busy.kill("SIGKILL"));
  }
  for (const node of nodes) {
    node.spawn();
  }
  await Promise.all(nodes.map((node) => node.ready()));
  const found: number[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const victim = nodes[kill % nodes.length];
    if (victim === undefined) {
      break;
    }
    const tasks = await begin(nodes, ledger);
    // And nodes do not die in step with their maintenance.
    await sleep(SETTLE_MS + random.between(0, MAX_PAUSE_MS));
    const pids = victim.workers;
    const hit = ledger.open.filter(({ pid }) => pids.includes(pid));
    const atMs = Date.now();
    await victim.kill();
    victim.spawn();
    const ready = victim.ready().then(() => Date.now() - atMs);
    const restarted = await Promise.all(hit.map((run) => nextRun(run, ledger)));
    const tookMs = restarted.map((run) => run.startedAtMs - atMs);
    found.push(...tookMs);
    options.onKill(tookMs, await ready);
    await Promise.all(tasks.map((taskId) => end(taskId, nodes)));
    for (const taskId of tasks) {
      ledger.forget(taskId);
    }
  }
  return found;
}

function spawnLoop(): ChildProcess {
  const loop = spawn("taskset", ["-c", CORE, process.execPath, "-e", "for (;;) {}"], {
    stdio: "ignore",
  });
  // However this process ends.
  process.once("exit", () => void loop.kill("SIGKILL"));
  return loop;
}

/** Submits tasks, spread over the nodes; resolves with their ids when all of them run. */
async function begin(nodes: readonly ChaosNode[], ledger: Ledger): Promise<readonly string[]> {
  const tasks = await Promise.all(
    Array.from({ length: TASKS }, (_, number) =>
      until(async () => {
        const { origin } = nodes[number % nodes.length] ?? {};
        const values = { number, ledger: ledger.url, holdMs: HOLD_MS };
        const headers = { "idempotency-key": crypto.randomUUID() };
        const answer = await ask(`${origin}/work/submit`, { method: "POST", values, headers });
        if (!isDefinite(answer)) {
          return undefined;
        }
        return (parsed(answer.text) as { task_id?: string } | undefined)?.task_id;
      }),
    ),
  );
  await until(async () => tasks.every((taskId) => ledger.runs(taskId).length > 0) || undefined);
  return tasks;
}

function nextRun({ taskId, attempt }: Run, ledger: Ledger): Promise<Run> {
  return until(async () => ledger.runs(taskId).find((run) => run.attempt > attempt));
}

/** Cancels a task; resolves when it has ended. */
async function end(taskId: string, nodes: readonly ChaosNode[]): Promise<void> {
  const origin = nodes[0]?.origin;
  await until(async () => {
    await ask(`${origin}/work/cancel?task_id=${taskId}&abort=true`, { method: "PUT" });
    const answer = await ask(`${origin}/work/status?task_id=${taskId}`);
    return /"status":"cancelled"/.test(answer?.text ?? "") || undefined;
  });
}

/** Asks until there is an answer. */
async function until<Value>(find: () => Promise<Value | undefined>): Promise<Value> {
  const untilMs = performance.now() + MAX_RESTART_MS;
  while (performance.now() < untilMs) {
    const value = await find();
    if (value !== undefined) {
      return value;
    }
    await sleep(AGAIN_MS);
  }
  throw new Error(`a task did not go on for ${MAX_RESTART_MS / 1_000} s`);
}
