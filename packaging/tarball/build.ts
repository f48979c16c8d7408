/**
 * Builds the tarball with its own Node: `node packaging/tarball/build.ts [--output FOLDER]`.
 *
 *   tessera-<version>-linux-x64/
 *     bin/tessera            the command; finds its Node beside itself
 *     bin/node
 *     bin/wait-until-ready   for the unit
 *     lib/tessera/           the npm package with its packages
 *     systemd/               the unit, to copy to /etc/systemd/system
 *
 * The same sources give the same bytes.
 */
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { programVersion, ROOT, writeNode, writeProgram } from "../program.ts";
import { GZIP, run, writeTar } from "../run.ts";

/** Follows links to itself, such as one in /usr/local/bin. */
const COMMAND = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/node" "$here/../lib/tessera/bin/tessera.js" "$@"
`;

/** Builds the tarball into `output`; returns its path. */
export function buildTarball(output: string): string {
  const name = `tessera-${programVersion()}-${process.platform}-${process.arch}`;
  const scratch = mkdtempSync(join(tmpdir(), "tessera-tarball-"));
  try {
    const root = join(scratch, name);
    mkdirSync(join(root, "bin"), { recursive: true });
    writeProgram(join(root, "lib/tessera"));
    writeNode(join(root, "bin/node"));
    writeFileSync(join(root, "bin/tessera"), COMMAND, { mode: 0o755 });
    const systemd = join(ROOT, "packaging/systemd");
    copyFileSync(join(systemd, "wait-until-ready.js"), join(root, "bin/wait-until-ready"));
    cpSync(systemd, join(root, "systemd"), { recursive: true });
    rmSync(join(root, "systemd/wait-until-ready.js"));
    for (const file of ["LICENSE", "README.md", "CHANGELOG.md"]) {
      copyFileSync(join(ROOT, file), join(root, file));
    }
    run("chmod", ["-R", "u=rwX,go=rX", root]);
    run("chmod", ["755", join(root, "bin/wait-until-ready")]);
    mkdirSync(output, { recursive: true });
    const archive = join(resolve(output), `${name}.tar.gz`);
    writeTar(archive, { folder: scratch, name, options: [GZIP] });
    return archive;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { output: { type: "string", default: join(ROOT, "packaging/out") } },
  });
  process.stdout.write(`${buildTarball(values.output)}\n`);
}
