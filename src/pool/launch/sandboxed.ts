/** Starts workers in the sandbox that the node has found, Node's permission model inside. */
import { existsSync } from "node:fs";
import type { KernelSandbox, Sandbox } from "../sandbox/sandbox.ts";
import { exitInside, spawnSandboxed } from "../sandbox/spawn.ts";
import type { Launch } from "./launch.ts";
import { launchNode, nodeCommand, workerEnvironment } from "./node.ts";

/** How workers of deployments start at a level. */
export function launchIn(sandbox: Sandbox): Launch {
  return sandbox.level === "kernel" ? launchSandboxed(sandbox) : launchNode(sandbox.setpriv);
}

function launchSandboxed({ bubblewrap, filter }: KernelSandbox): Launch {
  return (options) => {
    const { rights, scratchFolder } = options;
    const [program, ...args] = nodeCommand(options);
    const { child, pid } = spawnSandboxed({
      bubblewrap,
      filter,
      read: rights.read.filter((path) => existsSync(path)),
      writable: scratchFolder,
      program,
      args,
      env: workerEnvironment(options),
    });
    return { child, pid, endOf: exitInside };
  };
}
