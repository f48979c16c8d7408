/**
 * Runs the commands of the documents with an image alone, as they stand there:
 * `node packaging/image/commands.ts ARCHIVE [--python]`.
 *
 * Needs root, podman with runc and netavark, ip, unshare, curl and Python. All of it runs in a
 * network namespace of its own, with its own port 3000 and no way out. There `tessera` and
 * `npx tessera` are a fresh container for each command, held as docs/install.md says, on the
 * volume of the platform; `podman` keeps what it has in a storage of its own; other programs
 * are those of this machine. `curl` fails at every status of an error.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../run.ts";
import { runPythonCommands } from "./commands-python.ts";
import { runSmallCommands } from "./commands-small.ts";
import type { System } from "./context.ts";

const ALONE = 'ip link set lo up && exec "$@"';

/** Runs the commands in a process in a network namespace of its own; throws when one fails. */
export function tryCommands(archive: string, system: System): void {
  const folder = mkdtempSync(join(tmpdir(), "tessera-environment-"));
  try {
    const more = system === "python" ? ["--python", makeEnvironment(folder)] : [];
    const own = [process.execPath, import.meta.filename, archive, "--alone", ...more];
    const args = ["--net", "sh", "-c", ALONE, "sh", ...own];
    const { status } = spawnSync("unshare", args, { stdio: "inherit" });
    if (status !== 0) {
      throw new Error(`commands of the documents fail with the image (exit code ${status})`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The packages of the service in Python, while the index can be reached; returns their folder. */
function makeEnvironment(folder: string): string {
  const environment = join(folder, "venv");
  const requirements = join(import.meta.dirname, "trial/requirements.txt");
  run("/usr/bin/python3", ["-m", "venv", environment]);
  run(join(environment, "bin/pip"), ["install", "--quiet", "-r", requirements]);
  return environment;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      python: { type: "boolean", default: false },
      alone: { type: "boolean", default: false },
    },
  });
  const [archive, environment] = positionals;
  if (archive === undefined) {
    process.stderr.write("usage: node packaging/image/commands.ts ARCHIVE [--python]\n");
    process.exitCode = 2;
  } else if (!values.alone) {
    tryCommands(archive, values.python ? "python" : "small");
  } else if (environment === undefined) {
    await runSmallCommands(archive);
  } else {
    await runPythonCommands(archive, environment);
  }
}
