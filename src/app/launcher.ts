/** Runs `tessera launcher`: starts machines for deployments of a platform elsewhere, put together. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { ShellHosts } from "../agent/launcher/hosts.ts";
import { type LeftRunning, runLauncher } from "../agent/launcher/launcher.ts";
import type { Machines } from "../agent/launcher/machines.ts";
import { Pods, readPod } from "../agent/launcher/pods.ts";
import { RayJobs } from "../agent/launcher/ray.ts";
import { quoted, runner } from "../agent/launcher/run.ts";
import { SlurmJobs } from "../agent/launcher/slurm.ts";
import type { LauncherConfig } from "../config/launcher.ts";
import { createLog } from "../log/pino.ts";

interface LauncherRun {
  /** Aborts when the launcher is to end. */
  readonly leave: AbortSignal;
  /** The variables of programs that it runs, and of machines that it runs here. */
  readonly env: NodeJS.ProcessEnv;
  /** The deployments are known. */
  onStarted(deployments: readonly string[]): void;
}

/** Launches until it is told to end, or the platform refuses it; rejects then. */
export async function launch(
  config: LauncherConfig,
  token: string,
  { leave, env, onStarted }: LauncherRun,
): Promise<LeftRunning> {
  return await runLauncher(
    {
      ...config,
      token,
      hostname: hostname(),
      machines: machinesOf(config, env),
      log: createLog(config.logLevel),
      now: Date.now,
      newId: randomUUID,
      onStarted,
    },
    leave,
  );
}

function machinesOf(
  { on, hosts, options, pod, dataFolder, ...config }: LauncherConfig,
  env: NodeJS.ProcessEnv,
): Machines {
  const [now, run] = [Date.now, runner(env)];
  const command = config.command.length > 0 ? config.command : ["tessera", "worker"];
  switch (on) {
    case "exec": {
      const folder = join(dataFolder, "machines");
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      // How many there are is bounded for each deployment.
      const here = { name: hostname(), shell: ["sh"] as const, maxMachines: Infinity };
      const own = config.command.length > 0 ? config.command : ownCommand();
      return new ShellHosts({ hosts: [here], folder: quoted(folder), command: own, run, now });
    }
    case "ssh": {
      const ssh = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", ...options] as const;
      return new ShellHosts({
        hosts: hosts.map((name) => ({
          name,
          shell: [...ssh, "--", name, "sh"],
          maxMachines: 1,
          data: '"$HOME/.tessera/worker"',
        })),
        folder: '"$HOME/.tessera/machines"',
        command,
        run,
        now,
      });
    }
    case "slurm":
      return new SlurmJobs({ options, command, run, now });
    case "ray":
      return new RayJobs({
        address: (env.RAY_API_SERVER_ADDRESS || "http://127.0.0.1:8265").replace(/\/+$/, ""),
        token: env.RAY_AUTH_TOKEN || undefined,
        ...{ options, command, now },
      });
    case "kubernetes":
      return new Pods({
        options,
        pod: readPod(readFileSync(pod ?? "", "utf8"), pod ?? ""),
        run,
        now,
      });
  }
}

/** This program, which is not in PATH where it runs by npx. */
function ownCommand(): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? "", "worker"];
}
