/** The Python package as PyPI takes it: a wheel, and the sources. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";

/** One version, so that the same sources give the same bytes. Needs the package index. */
const BACKEND = "hatchling==1.27.0";

/** Builds both into `output`. Needs Python 3.10 or newer with venv. */
export function buildPython(output: string): void {
  const scratch = mkdtempSync(join(tmpdir(), "tessera-hatch-"));
  try {
    const python = join(scratch, "bin/python");
    run("python3", ["-m", "venv", scratch]);
    run(python, ["-m", "pip", "install", "--quiet", BACKEND]);
    run(python, ["-m", "hatchling", "build", "-d", resolve(output)], {
      cwd: join(ROOT, "clients/python"),
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
