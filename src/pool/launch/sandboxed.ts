/** Starts workers in the kernel's sandbox; for those in Node, its permission model is inside. */
import { existsSync } from "node:fs";
import { egressEnvironment } from "../../protocol/egress.ts";
import type { KernelSandbox } from "../sandbox/sandbox.ts";
import { exitInside, spawnSandboxed } from "../sandbox/spawn.ts";
import { type Launch, type ProgramOf, withMemoryGroup } from "./launch.ts";
import { withProcessLimits } from "./process-limits.ts";

/** Where the socket of a worker's egress proxy is in its sandbox. */
const EGRESS_SOCKET_INSIDE = "/run/tessera/egress.sock";

export function launchSandboxed(
  { bubblewrap, prlimit, memoryGroups, filter, deviceFilter }: KernelSandbox,
  programOf: ProgramOf,
): Launch {
  return (options) => {
    const { rights, limits, scratchFolder, cache, egress, devices = [] } = options;
    const {
      command: [program, ...args],
      env,
      files,
    } = programOf(options);
    return withMemoryGroup(memoryGroups, limits, (memory) => {
      const { child, pid, kill } = spawnSandboxed({
        bubblewrap: withProcessLimits([bubblewrap], options, prlimit),
        memory,
        filter: devices.length === 0 ? filter : deviceFilter,
        read: [...files, ...rights.read].filter((path) => existsSync(path)),
        writable: [scratchFolder, ...(cache === undefined ? [] : [cache.path])],
        devices,
        ...(egress !== undefined && {
          mounted: [{ path: egress.path, inside: EGRESS_SOCKET_INSIDE }],
        }),
        program,
        args,
        env: {
          ...env,
          ...(egress !== undefined &&
            egressEnvironment({
              socketPath: EGRESS_SOCKET_INSIDE,
              leadsOut: (name) => egress.leadsOut(name),
            })),
        },
      });
      return { child, memory, pid, kill, endOf: exitInside };
    });
  };
}
