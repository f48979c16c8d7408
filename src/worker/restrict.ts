/**
 * What Node's permission model leaves open, closed before the service is
 * loaded: signals to other processes, among them the one that makes Node open
 * its debugger; and, for a service that is hosted, sockets of the file system
 * (those of container engines and databases obey whoever reaches them), the
 * priority of other processes, and switches of V8.
 *
 * What is taken away is taken from the only objects that lead to it, so that a
 * service cannot find it elsewhere: the permission model keeps it from
 * threads, from `process.binding` and from native code.
 */
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import v8 from "node:v8";

/** What the system does to send a signal, and how another Node is told to open its debugger. */
interface Undocumented {
  _kill?: (pid: number, signal: number) => number;
  _debugProcess?: unknown;
  _debugEnd?: unknown;
}

/** Lets a service send signals to its own process only. */
export function keepSignalsToItself(): void {
  const hidden = process as unknown as Undocumented;
  // The function that is told about calls this one by its name, so it goes with it.
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

/** Takes from a hosted service what else reaches beyond its process; `channel` is any local socket. */
export function isolate(channel: object): void {
  const { _handle: handle } = channel as { _handle: object };
  const sockets = Object.getPrototypeOf(handle) as Record<string, unknown>;
  for (const name of ["bind", "bind2", "connect", "connect2", "fchmod"]) {
    if (name in sockets) {
      sockets[name] = denied("sockets of the file system are not allowed in a hosted service");
    }
  }
  os.setPriority = denied("a hosted service may not set priorities");
  v8.setFlagsFromString = denied("a hosted service may not set flags of V8");
  syncBuiltinESMExports();
}

function denied(message: string): () => never {
  return () => {
    throw Object.assign(new Error(message), { code: "ERR_ACCESS_DENIED" });
  };
}
