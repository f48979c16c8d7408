/** Chooses how the workers of a service start: by its language, and by the sandbox of the node. */

import { launchAlone } from "./launch/alone.ts";
import type { Launch, ProgramOf } from "./launch/launch.ts";
import { nodeProgram } from "./launch/node.ts";
import { pythonProgram } from "./launch/python.ts";
import { launchSandboxed } from "./launch/sandboxed.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import type { ServiceCode } from "./worker-options.ts";

export type LaunchOf = (service: Pick<ServiceCode, "code">) => Launch;

/** How programs start that work on what somebody brings, and are no workers. */
export type LaunchProgram = (program: ProgramOf) => Launch;

/** Without a sandbox, the workers run as what they are: an operator's own service. */
export function launchersFor(sandbox?: Sandbox): LaunchOf {
  return ({ code }) => {
    const program = typeof code === "object" ? pythonProgram(code) : nodeProgram;
    if (sandbox?.level === "kernel") {
      return launchSandboxed(sandbox, program);
    }
    const { setpriv, prlimit, memoryGroups } = sandbox ?? {};
    return launchAlone(program, {
      prlimit,
      memoryGroups,
      ...(typeof code !== "object" && { setpriv }),
    });
  };
}

/** In the same sandbox as the workers. */
export function programLauncher(sandbox: Sandbox): LaunchProgram {
  return (program) =>
    sandbox.level === "kernel" ? launchSandboxed(sandbox, program) : launchAlone(program, sandbox);
}
