/** Programs that packaging runs: synchronously, because each step needs what the one before wrote. */
import { spawnSync } from "node:child_process";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What the program reads. */
  readonly input?: string;
}

/** Runs a program and returns what it printed, without its last line break. Throws with its messages when it fails. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): string {
  const { cwd, env = {}, input = "" } = options;
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    input,
    encoding: "utf8",
    maxBuffer: 64 * 1024 ** 2,
  });
  if (status !== 0) {
    const end = error?.message ?? signal ?? `exit code ${status}`;
    throw new Error(`${command} ${args.join(" ")}: ${end}\n${stderr ?? ""}${stdout ?? ""}`);
  }
  return stdout.replace(/\n$/, "");
}

/** Whether a program is in the search path. */
export function isInstalled(command: string): boolean {
  return spawnSync("sh", ["-c", `command -v "${command}"`]).status === 0;
}
