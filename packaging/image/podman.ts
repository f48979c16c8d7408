/**
 * Podman with a storage of its own, which is removed with all its containers.
 * The driver of the storage is Podman's choice; STORAGE_DRIVER names another one.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { run } from "../run.ts";
import type { System } from "./context.ts";

/** As docs/install.md runs the image. */
const CONFINED = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "all"];
const UNPRIVILEGED = ["--security-opt", "no-new-privileges"];

/** What bubblewrap needs in a container (docs/sandbox.md). */
const NESTED = ["--security-opt", "seccomp=unconfined", "--security-opt", "unmask=/proc/*"];

/** Podman asks for more than a machine may allow, and fails then. */
export const ULIMITS = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=1000:1000"];

/** The options of `podman run` that hold a container as the documents say. */
export function confinement(system: System): readonly string[] {
  return [...CONFINED, ...UNPRIVILEGED, ...(system === "python" ? NESTED : []), ...ULIMITS];
}

/** Variables that say where packages of Python come from, and whom to trust. */
const INDEX_VARIABLE = /^(?:PIP_|UV_|SSL_CERT_|NODE_EXTRA_CA_CERTS$)/;
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

/**
 * The options of `podman run` with which a container reaches the package index as this machine
 * does: by the same variables, with the files and folders that they name.
 */
export function indexOptions(): readonly string[] {
  const variables = Object.entries(process.env).filter(([name]) => INDEX_VARIABLE.test(name));
  const paths = variables.map(([, value = ""]) => value).filter((path) => isAbsolute(path));
  const mounted = [...new Set([CERTIFICATES, ...paths])].filter((path) => existsSync(path));
  return [
    ...variables.flatMap(([name]) => ["-e", name]),
    ...mounted.flatMap((path) => ["-v", `${path}:${path}:ro`]),
  ];
}

export class Podman implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "tessera-podman-"));

  /** The arguments before the command: those of every call of `podman`. */
  get args(): readonly string[] {
    const [root, runRoot] = [join(this.#folder, "root"), join(this.#folder, "run")];
    const runtime = ["--runtime", "runc", "--cgroup-manager", "cgroupfs"];
    return ["--root", root, "--runroot", runRoot, ...runtime];
  }

  run(args: readonly string[], input = ""): string {
    return run("podman", [...this.args, ...args], { input });
  }

  /** Loads an OCI archive; returns the name of its image. */
  load(archive: string): string {
    const name = /Loaded image: (\S+)/.exec(this.run(["load", "-i", archive]))?.[1];
    if (name === undefined) {
      throw new Error(`podman loaded no image from ${archive}`);
    }
    return name;
  }

  [Symbol.dispose](): void {
    for (const args of [
      ["rm", "-f", "-a", "-t", "0"],
      ["volume", "rm", "-f", "-a"],
    ]) {
      try {
        this.run(args);
      } catch {
        // What is left of them goes with the folder.
      }
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
