/** Kills nodes and workers under load, and measures how soon everything goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Ledger, Run } from "./ledger.ts";
import type { Load } from "./load.ts";
import type { ChaosNode } from "./node.ts";
import type { Random } from "./random.ts";
import { within } from "./within.ts";

/** A worker that was heard of so recently is alive, unless it was killed. */
const ALIVE_MS = 1_500;
const MAX_PAUSE_MS = 400;
/** Longer than a lease and the start of a node together, or of a launcher and its machines. */
const MAX_RECOVERY_MS = 180_000;
/** What takes longer is told at once, so that a run which stands still says why. */
const SLOW_MS = 20_000;

/** What else goes wrong, such as a restart of the database; chosen now and then. */
export interface OtherFaults {
  /** Of all strikes. */
  readonly share: number;
  cause(): Promise<void>;
  /** How many were killed of what is no node and no worker, by its name. */
  readonly killed?: Readonly<Record<string, number>>;
}

export interface KillerOptions {
  readonly nodes: readonly ChaosNode[];
  readonly ledger: Ledger;
  readonly load: Load;
  readonly random: Random;
  readonly other?: OtherFaults;
  /** Told of a fault that tasks have waited for a long time after. */
  onSlow(fault: string, afterMs: number): void;
}

interface KillCounts {
  nodes: number;
  workers: number;
  other: number;
}

interface Interruption {
  readonly run: Run;
  readonly atMs: number;
}

export class Killer {
  readonly counts: KillCounts = { nodes: 0, workers: 0, other: 0 };
  /** The longest from a kill to the end of a task that was submitted after it. */
  slowestServiceMs = 0;
  /** The longest from a kill to the next attempt of a task that it interrupted. */
  slowestRestartMs = 0;
  readonly #options: KillerOptions;
  #interrupted: Interruption[] = [];

  constructor(options: KillerOptions) {
    this.#options = options;
  }

  get kills(): number {
    return Object.values(this.killed).reduce((sum, one) => sum + one, 0);
  }

  /** How many were killed, by what they were. */
  get killed(): Readonly<Record<string, number>> {
    const { nodes, workers } = this.counts;
    return { nodes, workers, ...this.#options.other?.killed };
  }

  /** One kill, and the wait until everything goes on. */
  async strike(): Promise<void> {
    const { random, nodes, load } = this.#options;
    const atMs = Date.now();
    const fault = await this.#cause(atMs);
    if (fault === undefined) {
      await sleep(MAX_PAUSE_MS);
      return;
    }
    try {
      await load.probe(MAX_RECOVERY_MS);
    } catch (err) {
      const outputs = nodes.map(({ output }) => output).join("\n");
      throw new Error(`after ${fault}: ${err instanceof Error ? err.message : err}\n${outputs}`);
    }
    const tookMs = Date.now() - atMs;
    this.slowestServiceMs = Math.max(this.slowestServiceMs, tookMs);
    if (tookMs > SLOW_MS) {
      this.#options.onSlow(fault, tookMs);
    }
    await sleep(random.between(0, MAX_PAUSE_MS));
  }

  /** Returns what it was; undefined where there was nothing to kill. */
  async #cause(atMs: number): Promise<string | undefined> {
    const { random, nodes, other } = this.#options;
    if (other && random.chance(other.share)) {
      await within(MAX_RECOVERY_MS, "a fault beside the kills", other.cause());
      this.counts.other += 1;
      return "a fault beside the kills";
    }
    if (random.chance(0.4)) {
      const node = random.pick(nodes);
      if (node === undefined) {
        return undefined;
      }
      await this.#killNode(node);
      return `the kill of a node, which was ready after ${Math.round((Date.now() - atMs) / 1_000)} s`;
    }
    return this.#killWorker(atMs) ? "the kill of a worker" : undefined;
  }

  /** Looks when the tasks that were interrupted went on; before the ledger forgets them. */
  measureRestarts(): void {
    const { ledger } = this.#options;
    for (const { run, atMs } of this.#interrupted) {
      const next = ledger.runs(run.taskId).find(({ attempt }) => attempt > run.attempt);
      if (next) {
        this.slowestRestartMs = Math.max(this.slowestRestartMs, next.startedAtMs - atMs);
      }
    }
    this.#interrupted = [];
  }

  async #killNode(node: ChaosNode): Promise<void> {
    const { random } = this.#options;
    const pids = node.workers;
    this.#interrupt(({ pid }) => pids.includes(pid));
    await node.kill();
    this.counts.nodes += 1;
    node.spawn();
    while (random.chance(0.15)) {
      // In the middle of its start.
      await sleep(random.between(50, 1_200));
      await node.kill();
      this.counts.nodes += 1;
      node.spawn();
    }
    await node.ready();
  }

  /** False when none is known to be alive. */
  #killWorker(nowMs: number): boolean {
    const { ledger, random } = this.#options;
    const pid = random.pick(ledger.pidsSince(nowMs - ALIVE_MS));
    if (pid === undefined) {
      return false;
    }
    ledger.forgetPid(pid);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has just ended, with its node or by itself.
      return false;
    }
    this.#interrupt((run) => run.pid === pid);
    this.counts.workers += 1;
    return true;
  }

  #interrupt(isKilled: (run: Run) => boolean): void {
    const atMs = Date.now();
    const { ledger } = this.#options;
    for (const run of ledger.open.filter(isKilled)) {
      ledger.abandon(run);
      this.#interrupted.push({ run, atMs });
    }
  }
}
