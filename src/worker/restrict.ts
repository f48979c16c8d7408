/**
 * A sandbox supplement: closes what Node's permission model leaves open, before the
 * service is loaded. Every service loses signals to other processes, including the
 * one that makes Node open its debugger. A service of a deployment also loses Unix
 * sockets (container engines and databases obey any process that reaches theirs),
 * the priority of other processes, and flags of V8.
 *
 * The functions are removed from the only objects that lead to them, so a service
 * cannot find them by another way: the permission model blocks threads,
 * `process.binding` and native code.
 */
import { syncBuiltinESMExports } from "node:module";
import { createConnection, Socket, type SocketConstructorOpts } from "node:net";
import os from "node:os";
import v8 from "node:v8";
import { mountSocketName } from "../protocol/messages.ts";

/** Node's undocumented functions for sending signals and for opening another Node's debugger. */
interface Undocumented {
  _kill?: (pid: number, signal: number) => number;
  _debugProcess?: unknown;
  _debugEnd?: unknown;
}

/** Lets a service send signals to its own process only. */
export function keepSignalsToItself(): void {
  const hidden = process as unknown as Undocumented;
  // Node's own `process.kill` calls this one by name, so both are replaced.
  const send = hidden._kill;
  delete hidden._kill;
  delete hidden._debugProcess;
  delete hidden._debugEnd;
  const own = process.pid;
  const { signals } = os.constants;
  const kill = (pid: number, signal: string | number = "SIGTERM"): true => {
    if (pid !== own) {
      throw new Error("a service may not send signals to other processes");
    }
    const number = typeof signal === "number" ? signal : signals[signal as NodeJS.Signals];
    if (number === undefined) {
      throw new TypeError(`Unknown signal: ${signal}`);
    }
    send?.(own, number);
    return true;
  };
  Object.defineProperty(process, "kill", { value: kill, writable: true, configurable: true });
  syncBuiltinESMExports();
}

export interface IsolationOptions {
  /** It may connect to Unix sockets, because its sandbox has none but its own. */
  readonly unixSockets: boolean;
}

/** Isolates a service of a deployment from other processes; `channel` is any Unix socket. */
export function isolate(channel: object, { unixSockets }: IsolationOptions): void {
  const { _handle: handle } = channel as { _handle: object };
  const sockets = Object.getPrototypeOf(handle) as Record<string, unknown>;
  for (const name of ["bind", "bind2", "fchmod", ...(unixSockets ? [] : ["connect", "connect2"])]) {
    if (name in sockets) {
      sockets[name] = denied("Unix sockets are not allowed in a deployed service");
    }
  }
  os.setPriority = denied("a deployed service may not set process priorities");
  v8.setFlagsFromString = denied("a deployed service may not set V8 flags");
  syncBuiltinESMExports();
}

/** The native requests and handles of Node's `net`, which it does not document. */
interface ConnectRequest {
  oncomplete?: (status: number) => void;
}
interface NativePipe {
  close(): void;
}
type NativeConnect = (this: object, request: ConnectRequest, path: string) => number;

/**
 * Connects to the socket of a mounted server by its index. Rejects with `errno`, which is that of
 * the system with a minus.
 */
export type ConnectMount = (index: number) => Promise<Socket>;

/**
 * Returns what makes a `ConnectMount` of a scratch folder, which works also after `isolate`; `channel`
 * is any Unix socket. A service may replace all that Node has, so the native function is called by
 * nothing of that, and with no other path.
 */
export function takeConnect(channel: object): (scratchFolder: string) => ConnectMount {
  const { _handle: handle } = channel as {
    _handle: { constructor: new (type: number) => NativePipe };
  };
  const { constructor: Pipe } = handle;
  const sockets = Object.getPrototypeOf(handle) as { connect: NativeConnect };
  const { connect } = sockets;
  const { apply } = Reflect;
  let NativeRequest: (new () => ConnectRequest) | undefined;
  // Node shows the class of its requests to the function alone.
  sockets.connect = (request) => {
    NativeRequest = request.constructor as new () => ConnectRequest;
    return -os.constants.errno.EPERM;
  };
  createConnection({ path: "/" }).on("error", () => {});
  sockets.connect = connect;
  return (scratchFolder) => (index) =>
    new Promise((resolve, reject) => {
      if (NativeRequest === undefined) {
        throw new Error("this version of Node has no requests for connections");
      }
      const pipe = new Pipe(0);
      const request = new NativeRequest();
      const failed = (errno: number): void => {
        pipe.close();
        reject(Object.assign(new Error(`cannot connect: ${errno}`), { errno }));
      };
      request.oncomplete = (status) =>
        status === 0
          ? resolve(
              new Socket({ handle: pipe, readable: true, writable: true } as SocketConstructorOpts),
            )
          : failed(status);
      const status = apply(connect, pipe, [
        request,
        `${scratchFolder}/${mountSocketName(index)}`,
      ]) as number;
      if (status !== 0) {
        failed(status);
      }
    });
}

function denied(message: string): () => never {
  return () => {
    throw Object.assign(new Error(message), { code: "ERR_ACCESS_DENIED" });
  };
}
