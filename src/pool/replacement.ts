/** A rolling replacement: starts the first workers of another revision beside the serving ones. */
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { Room } from "./room/room.ts";
import type { Leave } from "./room/start-gate.ts";
import type { Worker } from "./worker.ts";

interface ReplacementOptions {
  /** Starts a worker in this room, and gives it back if that fails. */
  readonly spawn: (room: Room) => Worker;
  /** The number of workers; at least one is started, to prove that the service loads. */
  readonly size: (manifest: ServiceManifest) => number;
  /** Waits for room on the node for one worker. */
  readonly room: (signal: AbortSignal) => Promise<Room>;
  /**
   * Room for one more, if there is some now. The workers that find none start when
   * the old ones, which hold it, have gone.
   */
  readonly freeRoom: () => Room | undefined;
  /** Waits until one more worker may start. */
  readonly enter: (signal: AbortSignal) => Promise<Leave>;
  onReady(worker: Worker): Promise<void>;
  /** Puts the workers in service; may throw. */
  readonly takeOver: (workers: Worker[], manifest: ServiceManifest) => void;
  /** Cancels the replacement. Its reason becomes the reason why the new workers are killed. */
  readonly signal: AbortSignal | undefined;
}

/** Resolves when the new workers have taken over. If one cannot start, ends all and rejects. */
export async function startRevision(options: ReplacementOptions): Promise<ServiceManifest> {
  const { spawn, size, room, freeRoom, enter, onReady, takeOver, signal } = options;
  const workers: Worker[] = [];
  const failed = new AbortController();
  const ended = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const start = async (taken: Room): Promise<ServiceManifest> => {
    let leave: Leave | undefined;
    try {
      leave = await enter(ended);
      ended.throwIfAborted();
    } catch (err) {
      leave?.();
      taken.leave();
      throw err;
    }
    try {
      const worker = spawn(taken);
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
    const manifest = await start(await room(ended));
    const others = Array.from({ length: Math.max(0, size(manifest) - 1) }, freeRoom);
    await Promise.all(others.map((taken) => taken && start(taken)));
    // Checked before and after: what `onReady` takes for a worker is given back when it exits.
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

/** Throws when one of the workers has ended, with its reason. */
async function refuseEnded(workers: readonly Worker[]): Promise<void> {
  const gone = workers.find(({ ended }) => ended);
  if (gone) {
    const { message } = await gone.exited;
    throw new Error(`a worker ended before it took calls: ${message}`);
  }
}
