/**
 * The channel to the node: a socket that the process was started with, under
 * a descriptor that no user code is told of. (It could find it; then it breaks
 * its own worker and nothing else, because the node trusts nothing it reads.)
 */
import { Socket } from "node:net";
import { encodeMessage, FrameReader } from "../protocol/frames.ts";
import { CHANNEL_DESCRIPTOR, type NodeMessage, type WorkerMessage } from "../protocol/messages.ts";
import { isolate, keepSignalsToItself } from "./restrict.ts";

export interface Channel {
  /** Sends a message; `sent` is called when it has been handed to the system. */
  send(message: WorkerMessage, sent?: () => void): void;
  /** Takes from the process what a hosted service must not have. */
  isolate(): void;
}

export interface ChannelListener {
  readonly message: (message: NodeMessage) => void;
  /** The node is gone, or is not one. */
  readonly disconnect: () => void;
}

/** Takes the channel. Throws when the process was not started with one. */
export function takeChannel({ message, disconnect }: ChannelListener): Channel {
  let socket: Socket;
  try {
    socket = new Socket({ fd: CHANNEL_DESCRIPTOR, readable: true, writable: true });
  } catch (cause) {
    throw new Error("the host of a service is started by a node, not by hand", { cause });
  }
  const reader = new FrameReader({
    maxBytes: Number.MAX_SAFE_INTEGER,
    onMessage: (received) => message(received as NodeMessage),
    onBroken: disconnect,
  });
  socket.on("data", (chunk) => reader.push(chunk));
  socket.on("error", disconnect);
  socket.on("close", disconnect);
  keepSignalsToItself();
  return {
    isolate: () => isolate(socket),
    send(outgoing, sent) {
      socket.write(encodeMessage(outgoing), () => sent?.());
    },
  };
}
