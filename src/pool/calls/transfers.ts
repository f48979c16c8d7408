/**
 * The file transfers of a worker's calls, and what happens to a call whose files
 * cannot be moved. While its arguments are written, a call has not begun; while
 * its result is read, it has ended. In both states it cannot be aborted in the
 * worker and does not time out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { toProblem } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { AbortReason, CallFailure, Payload, SentPayload } from "../../protocol/messages.ts";
import { BlobMissing } from "../../storage/blobs.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";
import type { Execution } from "./execution.ts";
import { FileExchange, type FileExchangeOptions } from "./file-exchange.ts";

/**
 * How long a task's result waits for a blob store that cannot take it, before the task runs
 * again.
 */
const RESULT_STORE_TIMEOUT_MS = 120_000;
/** Pause before a result is offered to the blob store again. */
const RESULT_STORE_RETRY_PAUSE_MS = 1_000;

export interface FileTransferOptions extends FileExchangeOptions {
  readonly keepers: Keepers;
}

/** The file store for each kind of endpoint. */
export type Keepers = {
  readonly [kind in EndpointManifest["kind"]]: Pick<FileKeeper, "keep" | "read" | "release">;
};

/** How the files of a worker's calls reach it, and how its large results come back. */
export interface Transfers {
  /** True while the call runs on the node's side only, not in the worker. */
  holds(callId: number, reason: AbortReason): boolean;
  /** True when the call has ended in the worker, and its result is being read. */
  isCollecting(callId: number): boolean;
  /** Brings the files of the arguments to the worker, then begins the call. */
  stage(
    execution: Execution,
    payload: Payload,
    begin: (sent: SentPayload) => void,
  ): Promise<void> | void;
  /** Reads a result, which ends the call. `execution` is undefined for a call that has ended. */
  collect(execution: Execution | undefined, sent: SentPayload): Promise<void> | void;
  /** The call has ended: its files are not needed any more. */
  ended(callId: number): void;
}

/** The calls of the worker. */
export interface TransferHost {
  /** Removes an execution from those under way; undefined when it has already ended. */
  settle(callId: number): Execution | undefined;
  isUnderWay(callId: number): boolean;
}

export class FileTransfers implements Transfers {
  readonly #host: TransferHost;
  readonly #exchange: FileExchange;
  readonly #keepers: Keepers;
  readonly #staging = new Set<number>();
  readonly #collecting = new Set<number>();
  /** Calls that have a folder. */
  readonly #folders = new Set<number>();

  constructor(options: FileTransferOptions, host: TransferHost) {
    this.#host = host;
    this.#exchange = new FileExchange(options);
    this.#keepers = options.keepers;
  }

  /** True while the call runs on the node's side only, not in the worker. */
  holds(callId: number, reason: AbortReason): boolean {
    // A shutdown does not discard a finished result.
    return this.#staging.has(callId) || (this.#collecting.has(callId) && reason !== "shutdown");
  }

  /** True when the call has ended in the worker, and its result is being read. */
  isCollecting(callId: number): boolean {
    return this.#collecting.has(callId);
  }

  /** Writes the arguments for the worker, then begins the call. */
  async stage(
    execution: Execution,
    payload: Payload,
    begin: (sent: SentPayload) => void,
  ): Promise<void> {
    const { id, kind } = execution.call;
    this.#staging.add(id);
    this.#folders.add(id);
    execution.pause();
    try {
      const sent = await this.#exchange.stage(id, payload, this.#keepers[kind]);
      this.#staging.delete(id);
      if (this.#host.isUnderWay(id)) {
        begin(sent);
      }
    } catch (err) {
      this.#staging.delete(id);
      endWith(this.#host.settle(id), err);
    }
  }

  /** Reads a result, which ends the call. `execution` is undefined for a call that has ended. */
  async collect(execution: Execution | undefined, sent: SentPayload): Promise<void> {
    if (execution === undefined || this.#collecting.has(execution.call.id)) {
      return;
    }
    const { id, kind } = execution.call;
    this.#folders.add(id);
    if (execution.isVoid) {
      this.#host.settle(id)?.displace("it was aborted");
      return;
    }
    this.#collecting.add(id);
    execution.pause();
    const keeper = this.#keepers[kind];
    try {
      const patienceMs = kind === "task" ? RESULT_STORE_TIMEOUT_MS : 0;
      const payload = await this.#collectPatiently(execution, sent, patienceMs);
      const settled = this.#host.settle(id);
      if (settled) {
        settled.succeed(payload);
      } else {
        await keeper.release(payload);
      }
    } catch (err) {
      endWith(this.#host.settle(id), err);
    } finally {
      this.#collecting.delete(id);
    }
  }

  /** The call has ended: removes its folder. */
  ended(callId: number): void {
    if (this.#folders.delete(callId)) {
      this.#exchange.clear(callId);
    }
  }

  async #collectPatiently(
    { call: { id, kind } }: Execution,
    sent: SentPayload,
    patienceMs: number,
  ): Promise<Payload> {
    const untilMs = Date.now() + patienceMs;
    for (;;) {
      try {
        return await this.#exchange.collect(id, sent, this.#keepers[kind]);
      } catch (err) {
        const again = isUnavailable(err) && this.#host.isUnderWay(id) && Date.now() < untilMs;
        if (!again) {
          throw err;
        }
        await sleep(RESULT_STORE_RETRY_PAUSE_MS);
      }
    }
  }
}

function isUnavailable(err: unknown): boolean {
  return toProblem(err).reason === "STORAGE_UNAVAILABLE";
}

/** Ends an execution whose files could not be moved. */
export function endWith(execution: Execution | undefined, err: unknown): void {
  if (isUnavailable(err)) {
    execution?.giveUp(toProblem(err));
  } else {
    execution?.fail(failureOf(err));
  }
}

function failureOf(err: unknown): CallFailure {
  if (err instanceof BlobMissing) {
    const message = "a file of the arguments is no longer in the blob store: send it again";
    return { code: "data_loss", reason: "CALL_FAILED", message, stack: String(err.stack) };
  }
  const { code, reason, rawMessage, stack = "" } = toProblem(err);
  const known = reason === "OUTPUT_INVALID" || reason === "RESULT_TOO_LARGE";
  return {
    code: codeToString(code),
    reason: known ? reason : "CALL_FAILED",
    message: rawMessage,
    stack,
  };
}
