/**
 * Builds the image: `node packaging/image/build.ts [--python] [--output FOLDER]`.
 *
 * Needs buildah, and root: the files of the image belong to it. The result is an
 * OCI archive, tessera-<version>.oci.tar, and its digest is printed; two builds
 * of the same sources on the same system have the same digest, because every time
 * in it is 0.
 *
 *   podman load -i packaging/out/tessera-0.1.0.oci.tar
 *   skopeo copy oci-archive:packaging/out/tessera-0.1.0.oci.tar docker://registry.example.com/tessera:0.1.0
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { programVersion, ROOT } from "../program.ts";
import { run, writeTar } from "../run.ts";
import { type System, writeContext } from "./context.ts";

export interface BuiltImage {
  /** The OCI archive. */
  readonly archive: string;
  /** Name and tag that it has in the archive. */
  readonly name: string;
  /** SHA-256 of its manifest, as registries show it. */
  readonly digest: string;
  /** Size of its compressed layers. */
  readonly bytes: number;
}

interface Index {
  readonly manifests: readonly { readonly digest: string }[];
}

interface Manifest {
  readonly layers: readonly { readonly size: number }[];
}

/** Builds an image into `output`. */
export function buildImage(system: System, output: string): BuiltImage {
  const version = programVersion();
  const tag = system === "python" ? `${version}-python` : version;
  const name = `tessera:${tag}`;
  const scratch = mkdtempSync(join(tmpdir(), "tessera-image-"));
  const storage = ["--storage-driver", "vfs", "--root", join(scratch, "storage")];
  const buildah = (...args: readonly string[]): string =>
    run("buildah", [...storage, "--runroot", join(scratch, "run"), ...args], {
      env: { BUILDAH_ISOLATION: "chroot" },
    });
  try {
    const context = join(scratch, "context");
    writeContext(context, system);
    const file = join(import.meta.dirname, "Containerfile");
    buildah(
      ...["bud", "--layers", "--timestamp", "0", "--format", "oci"],
      ...["--build-arg", `VERSION=${version}`, "-t", name, "-f", file, context],
    );
    mkdirSync(output, { recursive: true });
    const archive = join(resolve(output), `tessera-${tag}.oci.tar`);
    rmSync(archive, { force: true });
    const layout = join(scratch, "layout");
    buildah("push", name, `oci:${layout}:${name}`);
    const read = (path: string): unknown => JSON.parse(readFileSync(join(layout, path), "utf8"));
    const [{ digest }] = (read("index.json") as Index).manifests as [{ digest: string }];
    const { layers } = read(`blobs/${digest.replace(":", "/")}`) as Manifest;
    writeTar(archive, { folder: layout, name: "." });
    const bytes = layers.reduce((sum, { size }) => sum + size, 0);
    return { archive, name, digest, bytes };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      python: { type: "boolean", default: false },
      output: { type: "string", default: join(ROOT, "packaging/out") },
    },
  });
  const begun = performance.now();
  const { archive, digest, bytes } = buildImage(values.python ? "python" : "small", values.output);
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  process.stdout.write(
    `${archive}\n${digest}\n${(bytes / 1e6).toFixed(1)} MB in ${statSync(archive).size} bytes of archive, ${seconds} s\n`,
  );
}
