/** The workers of a deployment on this node, as people see them. */
import { type WorkerGpu, workerGpuText } from "../pool/gpus/gpus.ts";
import type { Worker } from "../pool/worker.ts";
import type { LaunchedMachine, NodeWorkers, WorkerRecord } from "../storage/hosting/nodes.ts";

/** Workers of one deployment that a node tells of. */
export const MAX_LISTED_WORKERS = 200;

/** Machines of launchers of one deployment that a node tells of. */
const MAX_LAUNCHED_MACHINES = 1_000;

/**
 * A joined worker that was heard of since then counts as connected: what others read of it would
 * else be written anew with each heartbeat.
 */
const HEARD_LATELY_MS = 10_000;

/** Of why a service does not run at a worker, which other nodes read from the database. */
const MAX_LISTED_FAULT_CHARACTERS = 1_000;

/** Notes when workers have begun, and describes those that are there. */
export class WorkerList {
  readonly #startedAtMs = new WeakMap<Worker, number>();
  readonly #gpus = new WeakMap<Worker, readonly WorkerGpu[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes a worker that was started or has joined, once, with its GPUs of this node, and returns it. */
  began(worker: Worker, gpus: readonly WorkerGpu[] = []): Worker {
    if (!this.#startedAtMs.has(worker)) {
      this.#startedAtMs.set(worker, this.#now());
      this.#gpus.set(worker, gpus);
    }
    return worker;
  }

  /** When the oldest of these workers began; undefined without any. */
  oldest(workers: Iterable<Worker>): number | undefined {
    const times = [...workers].map((worker) => this.#startedAtMs.get(worker) ?? this.#now());
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Describes the oldest of the workers. */
  describe(workers: Iterable<Worker>): NodeWorkers {
    const present = [...workers];
    const all = present
      .map((worker) => this.#record(worker))
      .sort((one, other) => one.startedAtMs - other.startedAtMs);
    const listed = all.slice(0, MAX_LISTED_WORKERS);
    const launched = launchedOf(present);
    return {
      workers: listed,
      omitted: all.length - listed.length,
      ...(launched.length > 0 && { launched }),
    };
  }

  #record(worker: Worker): WorkerRecord {
    const { id, revision = 0, machine, busyness, loaded, fault } = worker;
    const gpus = this.#gpus.get(worker) ?? [];
    return {
      workerId: id,
      revision,
      machine: machine && {
        hostname: machine.hostname,
        platform: machine.platform,
        version: machine.version,
        labels: machine.labels,
        ...(machine.load && { load: machine.load }),
        ...(machine.isDrained === true && { isDrained: true }),
        ...((machine.silentMs ?? 0) > HEARD_LATELY_MS && {
          heardAtMs: Math.round(this.#now() - (machine.silentMs ?? 0)),
        }),
      },
      startedAtMs: this.#startedAtMs.get(worker) ?? this.#now(),
      calls: busyness,
      ready: loaded,
      ...(gpus.length > 0 && { gpus: gpus.map(workerGpuText) }),
      ...(fault !== undefined && { fault: fault.slice(0, MAX_LISTED_FAULT_CHARACTERS) }),
    };
  }
}

/** A machine may bring several workers: one is enough. In place of a drained one another is started. */
function launchedOf(workers: readonly Worker[]): LaunchedMachine[] {
  const machines = new Map<string, boolean>();
  for (const { machine, stopping, isDraining, loaded } of workers) {
    if (machine?.launched !== undefined && !stopping && !isDraining) {
      machines.set(machine.launched, loaded || machines.get(machine.launched) === true);
    }
  }
  return [...machines]
    .slice(0, MAX_LAUNCHED_MACHINES)
    .map(([machine, ready]) => ({ machine, ready }));
}
