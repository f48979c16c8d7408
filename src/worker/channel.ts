/**
 * The channel to the node: a socket that the process inherits, on a descriptor that
 * is not announced to user code. (User code could find it, and would break only its
 * own worker, because the node trusts nothing that it reads.)
 */
import { Socket } from "node:net";
import { decodeNodeMessage, encodeMessage } from "../protocol/codec.ts";
import { FrameReader } from "../protocol/frames.ts";
import { CHANNEL_DESCRIPTOR, type NodeMessage, type WorkerMessage } from "../protocol/messages.ts";
import {
  type ConnectMount,
  type IsolationOptions,
  isolate,
  keepSignalsToItself,
  takeConnect,
} from "./restrict.ts";

export interface Channel {
  /** Sends a message; `sent` is called when it was handed to the operating system. */
  send(message: WorkerMessage, sent?: () => void): void;
  /** Removes from the process what a service of a deployment must not have. */
  isolate(options: IsolationOptions): void;
  /** What connects to the node for mounted servers, also after `isolate`. */
  connectMountsIn(scratchFolder: string): ConnectMount;
}

interface ChannelListener {
  readonly message: (message: NodeMessage) => void;
  /** The node is gone, or the stream is not from a node. */
  readonly disconnect: () => void;
}

/** Opens the channel. Throws when the process was started without one. */
export function takeChannel({ message, disconnect }: ChannelListener): Channel {
  let socket: Socket;
  try {
    socket = new Socket({ fd: CHANNEL_DESCRIPTOR, readable: true, writable: true });
  } catch (cause) {
    throw new Error("a worker is started by a node, not by hand", { cause });
  }
  const reader = new FrameReader({
    maxBytes: Number.MAX_SAFE_INTEGER,
    onMessage: (header, attachments) => message(decodeNodeMessage(header, attachments)),
    onBroken: disconnect,
  });
  socket.on("data", (chunk) => reader.push(chunk));
  socket.on("error", disconnect);
  socket.on("close", disconnect);
  keepSignalsToItself();
  return {
    isolate: (options) => isolate(socket, options),
    connectMountsIn: takeConnect(socket),
    send(outgoing, sent) {
      socket.write(encodeMessage(outgoing), () => sent?.());
    },
  };
}
