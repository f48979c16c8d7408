/**
 * The IPC channel to the node, taken away from user code, and with it the
 * other ways in which it could reach the node by accident.
 *
 * Node delivers what arrives by `process.emit("message")` while somebody
 * listens, and gives everybody `process.send`. Here `emit` is replaced, so that
 * messages reach the host alone; `listenerCount` says that somebody listens,
 * so that Node does not hold them back; and `send` is gone before any user code
 * is loaded. The channel is held open by an explicit `ref`, which listeners of
 * user code that come and go do not undo.
 *
 * At the end of the channel Node itself calls `process.disconnect()` and then
 * clears `process.channel`; when somebody else calls it, the channel stays. So
 * the replacement looks whether the channel is still there.
 */
import type { NodeMessage, WorkerMessage } from "../protocol.ts";

export interface Channel {
  /** Sends a message; `sent` is called when it has been handed to the system. */
  send(message: WorkerMessage, sent?: () => void): void;
}

export interface ChannelListener {
  readonly message: (message: NodeMessage) => void;
  readonly disconnect: () => void;
}

/** Takes the channel. Throws when the process was not forked with one. */
export function takeChannel({ message, disconnect }: ChannelListener): Channel {
  const send = process.send?.bind(process);
  if (send === undefined) {
    throw new Error("the host of a service is started by a node, not by hand");
  }
  const emit = process.emit.bind(process) as (...event: unknown[]) => boolean;
  const listenerCount = process.listenerCount.bind(process);
  const intercepted = (...event: unknown[]): boolean => {
    if (event[0] === "message") {
      message(event[1] as NodeMessage);
      return true;
    }
    return emit(...event);
  };
  hide("emit", intercepted);
  hide("listenerCount", (name: string, ...rest: []) =>
    name === "message" ? 1 : listenerCount(name, ...rest),
  );
  hide("send", undefined);
  hide("kill", killNobodyElse(process.kill.bind(process)));
  hide("disconnect", () => process.nextTick(() => !process.channel && disconnect()));
  process.channel?.ref();
  return {
    send(outgoing, sent) {
      send(outgoing, undefined, undefined, () => sent?.());
    },
  };
}

/** The permission model has no say in signals, and the node's own number is `process.ppid`. */
function killNobodyElse(kill: typeof process.kill): typeof process.kill {
  return (pid, signal) => {
    if (pid !== process.pid) {
      throw new Error("a service may not send signals to other processes");
    }
    return kill(pid, signal);
  };
}

function hide(property: string, value: unknown): void {
  Object.defineProperty(process, property, { value, writable: true, configurable: true });
}
