/** The first workers of another revision, started beside those that serve. */
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { Leave } from "./start-gate.ts";
import type { WorkerProcess } from "./worker.ts";

export interface ReplacementOptions {
  readonly spawn: () => WorkerProcess;
  /** How many there should be; one is started at least, to prove that the service loads. */
  readonly size: () => number;
  /** Room to start one. */
  readonly enter: (signal: AbortSignal) => Promise<Leave>;
  onReady(worker: WorkerProcess): Promise<void>;
  /** Takes them over, or throws. */
  readonly takeOver: (workers: WorkerProcess[], manifest: ServiceManifest) => void;
  /** Gives up; the reason says why its workers are ended. */
  readonly signal: AbortSignal | undefined;
}

/** Resolves when they have taken over. Rejects when one of them cannot start; then none is left. */
export async function startRevision(options: ReplacementOptions): Promise<ServiceManifest> {
  const { spawn, size, enter, onReady, takeOver, signal } = options;
  const workers: WorkerProcess[] = [];
  const failed = new AbortController();
  const ended = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const start = async (): Promise<ServiceManifest> => {
    const leave = await enter(ended);
    try {
      ended.throwIfAborted();
      const worker = spawn();
      workers.push(worker);
      return await worker.load();
    } finally {
      leave();
    }
  };
  const giveUp = (): void => {
    const reason: unknown = signal?.reason;
    for (const worker of workers) {
      worker.kill(reason instanceof Error ? reason.message : String(reason));
    }
  };
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    const manifest = await start();
    const others = Array.from({ length: Math.max(0, size() - 1) }, start);
    await Promise.all(others);
    // What is held for a worker from `onReady` on is given back at its end, which must come later.
    await refuseEnded(workers);
    await Promise.all(workers.map((worker) => onReady(worker)));
    signal?.throwIfAborted();
    await refuseEnded(workers);
    takeOver(workers, manifest);
    return manifest;
  } catch (err) {
    failed.abort();
    for (const worker of workers) {
      worker.discard("another worker of its revision could not start");
    }
    await Promise.all(workers.map((worker) => worker.outputEnded));
    signal?.throwIfAborted();
    throw err;
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

/** Throws when one of them has ended, and says why it did. */
async function refuseEnded(workers: readonly WorkerProcess[]): Promise<void> {
  const gone = workers.find(({ ended }) => ended);
  if (gone) {
    throw new Error(`a worker ended before it took calls: ${await gone.exited}`);
  }
}
