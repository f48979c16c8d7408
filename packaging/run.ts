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

/** Without what differs between machines and times: the same files give the same bytes. */
const REPRODUCIBLE = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];

export interface TarContent {
  readonly folder: string;
  readonly name: string;
  readonly options?: readonly string[];
}

/** Writes `name` of a folder into a tar archive; `options` are tar's own. */
export function writeTar(archive: string, { folder, name, options = [] }: TarContent): void {
  run("tar", [...REPRODUCIBLE, ...options, "-cf", archive, "-C", folder, name]);
}

/** Compresses an archive, without the time in gzip's header. */
export const GZIP = "--use-compress-program=gzip -n";

/** Whether a program is in the search path. */
export function isInstalled(command: string): boolean {
  return spawnSync("sh", ["-c", `command -v "${command}"`]).status === 0;
}
