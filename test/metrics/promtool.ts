/** The linter of Prometheus for what a node exposes; Debian has it in the package of Prometheus. */
import { spawnSync } from "node:child_process";

/** What `promtool check metrics` finds in an exposition, a line each; throws where there is none. */
export function lint(exposition: string): string[] {
  const { stdout, stderr, error } = spawnSync("promtool", ["check", "metrics"], {
    input: exposition,
    encoding: "utf8",
    timeout: 20_000,
  });
  if (error) {
    throw new Error("`promtool` cannot be run: apt-get install prometheus", { cause: error });
  }
  return `${stdout}${stderr}`.split("\n").filter((line) => line !== "");
}
