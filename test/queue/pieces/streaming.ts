/** Attempts that stream on a real storage, with a worker whose chunks the test sends. */
import { SERVICE_LIMITS } from "../../../src/config/limits.ts";
import type { ExecutionEnd, ExecutionListener } from "../../../src/pool/calls/execution.ts";
import type { Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import type { Queue } from "../../../src/queue/queue.ts";
import type { FileKeeper } from "../../../src/storage/files/keeper.ts";
import type { PieceForm, PiecePosition } from "../../../src/storage/pieces.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { localFiles, ownFolder } from "../../storage/files/local.ts";
import { claim, ENDPOINT } from "../../storage/fixtures.ts";
import { queueOn } from "../queues.ts";

const FOLDER = ownFolder();

/** The id of a task. */
export const TASK = createIdSource()();

export const BEGINNING: PiecePosition = { attempt: 0, sequence: 0 };

/** The call of a task in a worker, as the test plays it. */
export interface PlayedCall {
  send(...pieces: (string | Uint8Array)[]): void;
  /** The function has returned, or something else has ended it. */
  end(end?: ExecutionEnd): void;
  /** How many pieces the node has asked for beyond the first window. */
  readonly credit: number;
  /** Why it was aborted; the function ends by itself then. */
  readonly aborted: string | undefined;
}

export class Streaming {
  readonly queue: Queue;
  readonly keeper: FileKeeper;
  readonly #storage: Storage;

  constructor(storage: Storage, limits: Partial<typeof SERVICE_LIMITS> = {}) {
    this.#storage = storage;
    this.keeper = localFiles(FOLDER, storage).task;
    this.queue = queueOn(storage, {
      keeper: this.keeper,
      limits: { ...SERVICE_LIMITS, ...limits },
    });
  }

  /** Claims the queued tasks and begins them. */
  async begin(pieces: PieceForm = "text", leaseId?: string): Promise<PlayedCall[]> {
    const claimed = await claim(this.#storage, leaseId === undefined ? {} : { leaseId });
    return claimed.map((one) => {
      const call = new Played();
      const endpoint = {
        name: ENDPOINT,
        kind: "task",
        stream: { pieces },
        output: {},
        ...(pieces === "bytes" && { outputFile: { contentType: "image/png" } }),
        retries: { max: 1, backoffMs: 0 },
      } as EndpointManifest;
      this.queue.begin(one, endpoint, call as unknown as Slot);
      return call;
    });
  }

  /** Reads the pieces of a task. */
  read(taskId: string, after = BEGINNING, signal?: AbortSignal) {
    return this.queue.tasks.pieces({ taskId, ...(signal && { signal }) }, after);
  }

  /** Everything that a reader gets until the task ends, in short. */
  async told(taskId: string, after = BEGINNING): Promise<unknown[]> {
    const told: unknown[] = [];
    for await (const event of this.read(taskId, after)) {
      told.push(event.kind === "piece" ? event.piece.data : `restart ${event.attempt}`);
    }
    return told;
  }
}

/** A slot and the execution in it. */
class Played implements PlayedCall {
  credit = 0;
  aborted: string | undefined;
  #listener: ExecutionListener | undefined;
  #sent = 0;

  execute(_call: unknown, listener: ExecutionListener): this {
    this.#listener = listener;
    return this;
  }

  release(): void {}

  more(count: number): void {
    this.credit += count;
  }

  abort(reason: string): void {
    this.aborted ??= reason;
    this.#listener?.onEnd({ kind: "aborted", reason: "cancelled" });
  }

  send(...pieces: (string | Uint8Array)[]): void {
    for (const piece of pieces) {
      this.#sent += 1;
      this.#listener?.onChunk?.(piece, this.#sent);
    }
  }

  end(end?: ExecutionEnd): void {
    const result = { json: String(this.#sent), files: [] };
    this.#listener?.onEnd(end ?? { kind: "result", result });
  }
}
