/** Starts workers in the kernel's sandbox; for those in Node, its permission model is inside. */
import { existsSync } from "node:fs";
import { egressEnvironment } from "../../protocol/egress.ts";
import { maxTasksOf } from "../limits.ts";
import { deviceFiles, driverLibraries, gpuEnvironment } from "../sandbox/gpus.ts";
import { byOwnLoader } from "../sandbox/image.ts";
import type { KernelSandbox } from "../sandbox/sandbox.ts";
import { exitInside, spawnSandboxed } from "../sandbox/spawn.ts";
import {
  type Launch,
  type LaunchOptions,
  type ProgramOf,
  type WorkerProgram,
  withMemoryGroup,
} from "./launch.ts";
import { modelPathInside } from "./models.ts";
import { withinTasks, withProcessLimits } from "./process-limits.ts";

/** The size of `/dev/shm`, as a share of the worker's memory, to which what is in it counts. */
const MAX_SHARED_MEMORY_SHARE = 0.5;
/** Where the socket of a worker's egress proxy is in its sandbox. */
const EGRESS_SOCKET_INSIDE = "/run/tessera/egress.sock";
/** Folders of programs, where there are any: a sandbox without system packages has none. */
const PROGRAMS_OF_PACKAGES = "/usr/bin:/usr/sbin";
/** The same of an image that does not say. */
const PROGRAMS_OF_IMAGE = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export function launchSandboxed(sandbox: KernelSandbox, programOf: ProgramOf): Launch {
  const { bubblewrap, prlimit, memoryGroups, filter } = sandbox;
  return (options) => {
    const { rights, limits, scratchFolder, cache, egress, layer, image } = options;
    const { gpus = [], models = [] } = options;
    const devices = deviceFiles(gpus);
    const { command, env, files } = programOf(options);
    const maxTasks = limits && maxTasksOf(limits);
    const driver = devices.length === 0 ? undefined : driverLibraries();
    const [program, ...args] =
      maxTasks === undefined ? command : held(command, maxTasks, { ...sandbox, image });
    return withMemoryGroup(memoryGroups, limits, (memory) => {
      const { child, pid, first, kill } = spawnSandboxed({
        bubblewrap: withProcessLimits([bubblewrap], options, prlimit),
        memory,
        filter: filter({ sharedMemory: devices.length > 0, processes: maxTasks !== undefined }),
        ...(limits !== undefined &&
          maxTasks !== undefined && {
            sharedMemoryBytes: Math.floor(limits.memoryBytes * MAX_SHARED_MEMORY_SHARE),
          }),
        read: [
          ...files,
          ...rights.read,
          ...(driver?.files ?? []),
          ...(prlimit !== undefined && [program, ...args].includes(prlimit) ? [prlimit] : []),
        ].filter((path) => existsSync(path)),
        writable: [scratchFolder, ...(cache === undefined ? [] : [cache.path])],
        devices,
        layer,
        image,
        mounted: [
          ...models.map(({ name, path }) => ({ path, inside: modelPathInside(name) })),
          ...(egress === undefined ? [] : [{ path: egress.path, inside: EGRESS_SOCKET_INSIDE }]),
        ],
        program,
        args,
        env: {
          ...(layer !== undefined && { PATH: PROGRAMS_OF_PACKAGES }),
          ...(image !== undefined && { PATH: PROGRAMS_OF_IMAGE, ...image.variables }),
          ...(driver !== undefined && { LD_LIBRARY_PATH: driver.folder }),
          ...(limits && gpuEnvironment(gpus, { hasOthers: false })),
          ...env,
          ...(egress !== undefined &&
            egressEnvironment({
              socketPath: EGRESS_SOCKET_INSIDE,
              leadsOut: (name) => egress.leadsOut(name),
            })),
        },
      });
      // With a writable `/proc`, a worker may write to the memory of that one.
      const reachable = devices.length > 0 && { first };
      return { child, memory, pid, ...reachable, kill, endOf: exitInside };
    });
  };
}

/** The command with what holds its processes and threads. Throws where nothing does. */
function held(
  command: WorkerProgram["command"],
  maxTasks: number,
  { prlimit, memoryGroups, image }: KernelSandbox & Pick<LaunchOptions, "image">,
): WorkerProgram["command"] {
  if (process.geteuid?.() !== 0 && prlimit !== undefined) {
    const limited = withinTasks(command, maxTasks, prlimit);
    return image === undefined ? limited : byOwnLoader(limited);
  }
  if (memoryGroups?.boundsTasks) {
    return command;
  }
  throw new Error(
    "it may start processes, and nothing bounds them on this machine: run the node as a user that is not root, with prlimit (package util-linux), or let it make control groups (docs/sandbox.md)",
  );
}
