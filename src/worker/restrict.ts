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
import os from "node:os";
import v8 from "node:v8";

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

function denied(message: string): () => never {
  return () => {
    throw Object.assign(new Error(message), { code: "ERR_ACCESS_DENIED" });
  };
}
