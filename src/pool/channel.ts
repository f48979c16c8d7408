/**
 * The channel to a worker: frames in both directions. What a worker sends is hostile
 * bytes, so a message that the protocol does not have breaks the channel, and a worker
 * with limits is read no faster than a rate.
 */
import type { Socket } from "node:net";
import type { Attachments } from "../protocol/attachments.ts";
import { encodeMessage } from "../protocol/codec.ts";
import { FrameReader } from "../protocol/frames.ts";
import {
  MAX_ATTACHMENTS,
  MAX_HEADER_BYTES,
  type NodeMessage,
  type WorkerMessage,
} from "../protocol/messages.ts";
import { readWorkerMessage } from "./checks/check.ts";
import { ThrottledStream } from "./throttled-stream.ts";

/**
 * Messages taken from a worker with limits, where one of 16 KiB counts twice. A worker that
 * answers calls as fast as it can sends a few thousand.
 */
const WORKER_MESSAGES_PER_SECOND = 10_000;
/** Bytes of messages that count as one more message for the rate of a worker. */
const WORKER_MESSAGE_UNIT_BYTES = 16 * 1024;

interface WorkerChannelOptions {
  /** Limit of one message from the worker. */
  readonly maxMessageBytes: number;
  /** Reads no faster than the rate of a worker with limits. */
  readonly throttled: boolean;
  onMessage(message: WorkerMessage): void;
  /** The node failed to handle a message: log it. The channel is broken. */
  onFault(err: unknown): void;
  /** The worker broke the protocol, and nothing more is read of it. */
  onBroken(reason: string): void;
}

export class WorkerChannel implements Disposable {
  readonly #socket: Socket;
  readonly #options: WorkerChannelOptions;
  readonly #reader: FrameReader;
  readonly #throttle: ThrottledStream | undefined;

  constructor(socket: Socket, options: WorkerChannelOptions) {
    this.#socket = socket;
    this.#options = options;
    const throttle = options.throttled
      ? new ThrottledStream(socket, WORKER_MESSAGES_PER_SECOND)
      : undefined;
    this.#throttle = throttle;
    this.#reader = new FrameReader({
      maxBytes: options.maxMessageBytes,
      maxHeaderBytes: MAX_HEADER_BYTES,
      maxAttachments: MAX_ATTACHMENTS,
      onMessage: (header, attachments) => {
        throttle?.spend(1);
        this.#take(header, attachments);
      },
      onBroken: (reason) => options.onBroken(reason),
    });
    socket.on("data", (chunk: Buffer) => {
      throttle?.spend(chunk.length / WORKER_MESSAGE_UNIT_BYTES);
      this.#reader.push(chunk);
    });
    // The process is ending; its exit gives the reason.
    socket.on("error", () => {});
  }

  send(message: NodeMessage): void {
    if (this.#socket.writable) {
      this.#socket.write(encodeMessage(message));
    }
  }

  /** Ignores everything else that the worker sends. */
  end(): void {
    this.#reader.end();
  }

  [Symbol.dispose](): void {
    this.#throttle?.[Symbol.dispose]();
  }

  /** No message of a worker may crash the node: an exception here breaks the channel. */
  #take(header: unknown, attachments: Attachments): void {
    let fault: string | undefined;
    try {
      const message = readWorkerMessage(header, attachments);
      fault = attachments.fault;
      if (message && fault === undefined) {
        this.#options.onMessage(message);
        return;
      }
    } catch (err) {
      this.#options.onFault(err);
    }
    this.end();
    this.#options.onBroken(fault ?? "it sent a message that the protocol does not have");
  }
}
