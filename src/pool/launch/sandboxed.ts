/** Starts workers in the sandbox that the node has found, Node's permission model inside. */
import { existsSync } from "node:fs";
import { egressEnvironment } from "../../protocol/egress.ts";
import type { KernelSandbox, Sandbox } from "../sandbox/sandbox.ts";
import { exitInside, spawnSandboxed } from "../sandbox/spawn.ts";
import type { Launch } from "./launch.ts";
import { launchNode, nodeCommand, workerEnvironment } from "./node.ts";

/** Where the socket of a worker's egress proxy is in its sandbox. */
const EGRESS_SOCKET_INSIDE = "/run/tessera/egress.sock";

/** How workers of deployments start at a level. */
export function launchIn(sandbox: Sandbox): Launch {
  return sandbox.level === "kernel" ? launchSandboxed(sandbox) : launchNode(sandbox.setpriv);
}

function launchSandboxed({ bubblewrap, filter }: KernelSandbox): Launch {
  return (options) => {
    const { rights, scratchFolder, egressSocket } = options;
    const [program, ...args] = nodeCommand(options);
    const { child, pid, kill } = spawnSandboxed({
      bubblewrap,
      filter,
      read: rights.read.filter((path) => existsSync(path)),
      writable: scratchFolder,
      ...(egressSocket !== undefined && {
        mounted: [{ path: egressSocket, inside: EGRESS_SOCKET_INSIDE }],
      }),
      program,
      args,
      env: {
        ...workerEnvironment(options),
        ...(egressSocket !== undefined && egressEnvironment(EGRESS_SOCKET_INSIDE)),
      },
    });
    return { child, pid, kill, endOf: exitInside };
  };
}
