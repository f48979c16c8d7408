/**
 * Native code: finds the platform-specific parts of packages. Such a package often
 * has one part per platform, npm installs the matching one
 * (`optionalDependencies`), and the package builds its name at run time. Tracing
 * cannot follow that, so installed parts are included completely.
 */
import { glob, readFile, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FindPackage, InstalledPackage } from "./packages.ts";
import type { Dependency } from "./trace.ts";

interface PlatformParts {
  readonly files: readonly string[];
  readonly dependencies: readonly Dependency[];
}

/** The installed platform parts of packages, and of these parts in turn. */
export async function platformParts(
  packages: readonly InstalledPackage[],
  findPackage: FindPackage,
): Promise<PlatformParts> {
  const files: string[] = [];
  const dependencies: Dependency[] = [];
  const queue = [...packages];
  const seen = new Set<string>();
  for (const from of queue) {
    const { optionalDependencies = {} } = await description(from.root);
    for (const name of Object.keys(optionalDependencies)) {
      const root = await installedFor(from.root, name);
      const { os, cpu } = root === undefined ? {} : await description(root);
      const to = root === undefined ? undefined : findPackage(join(root, "package.json"));
      if (to === undefined || (os ?? cpu) === undefined) {
        continue;
      }
      dependencies.push({ from, name, to });
      if (!seen.has(to.root)) {
        seen.add(to.root);
        queue.push(to);
        files.push(...(await filesOf(to.root)));
      }
    }
  }
  return { files, dependencies };
}

interface Description {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly os?: unknown;
  readonly cpu?: unknown;
}

async function description(root: string): Promise<Description> {
  try {
    return JSON.parse(await readFile(join(root, "package.json"), "utf8")) as Description;
  } catch {
    // Without a package.json there are no parts.
    return {};
  }
}

/** The real folder of a package that resolves by name from another one. */
async function installedFor(from: string, name: string): Promise<string | undefined> {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = await realpath(join(folder, "node_modules", name)).catch(() => undefined);
    if (found !== undefined || folder === dirname(folder)) {
      return found;
    }
  }
}

async function filesOf(root: string): Promise<string[]> {
  const files: string[] = [];
  const entries = glob("**", { cwd: root, withFileTypes: true, exclude: ["node_modules/**"] });
  for await (const entry of entries) {
    if (entry.isFile()) {
      files.push(join(entry.parentPath, entry.name));
    }
  }
  return files;
}

/** The platform of this machine, such as `linux-x64-glibc` or `darwin-arm64`. */
export function currentPlatform(): string {
  const { platform, arch } = process;
  return platform === "linux"
    ? `${platform}-${arch}-${usesGlibc() ? "glibc" : "musl"}`
    : `${platform}-${arch}`;
}

function usesGlibc(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}
