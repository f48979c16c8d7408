import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The words after the command's name, as a shell splits them. */
export async function readByShell(name: string, command: string): Promise<string[]> {
  const script = `${name}() { printf '%s\\0' "$@"; }; ${command}`;
  const { stdout } = await promisify(execFile)("sh", ["-c", script]);
  return stdout.split("\0");
}
