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
import { parseArgs } from "node:util";
import { runPythonCommands } from "./commands-python.ts";
import { runSmallCommands } from "./commands-small.ts";
import type { System } from "./context.ts";

const ALONE = 'ip link set lo up && exec "$@"';

/** Runs the commands in a process in a network namespace of its own; throws when one fails. */
export function tryCommands(archive: string, system: System): void {
  const own = [process.execPath, import.meta.filename, archive, "--alone"];
  const args = ["--net", "sh", "-c", ALONE, "sh", ...own];
  const python = system === "python" ? ["--python"] : [];
  const { status } = spawnSync("unshare", [...args, ...python], { stdio: "inherit" });
  if (status !== 0) {
    throw new Error(`commands of the documents fail with the image (exit code ${status})`);
  }
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      python: { type: "boolean", default: false },
      alone: { type: "boolean", default: false },
    },
  });
  const [archive] = positionals;
  if (archive === undefined) {
    process.stderr.write("usage: node packaging/image/commands.ts ARCHIVE [--python]\n");
    process.exitCode = 2;
  } else if (!values.alone) {
    tryCommands(archive, values.python ? "python" : "small");
  } else {
    await (values.python ? runPythonCommands(archive) : runSmallCommands(archive));
  }
}
