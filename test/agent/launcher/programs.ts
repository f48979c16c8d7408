/** Programs of a cluster that a test plays, before all others in PATH; they note how they are called. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Run, runner } from "../../../src/agent/launcher/run.ts";

export class Programs implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "tessera-programs-"));

  /** Runs programs, these before all others. */
  get run(): Run {
    return runner({
      PATH: `${this.folder}:${process.env.PATH}`,
      TESSERA_LAUNCH_TOKEN: "of the launcher",
    });
  }

  /** Plays a program: a script of a shell, run in the folder. Its calls and what they read are noted. */
  play(name: string, script: string): void {
    const path = join(this.folder, name);
    writeFileSync(
      path,
      `#!/bin/sh\ncd ${this.folder}\nprintf '%s\\n' "$*" >> ${name}.calls\n${script}\n`,
    );
    chmodSync(path, 0o755);
  }

  /** The arguments of the calls of a program. */
  calls(name: string): string[] {
    return this.read(`${name}.calls`).trimEnd().split("\n");
  }

  read(file: string): string {
    return readFileSync(join(this.folder, file), "utf8");
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
