/**
 * Unpacks system packages into one folder, the layer. No package is installed: none of its
 * scripts runs. Each is unpacked by `dpkg-deb` into a folder of its own, in which its links lead
 * to nothing of another package, and is then moved into the layer entry by entry.
 *
 * In a layer are folders, plain files and links, without bits that give rights (setuid, setgid).
 * Its links are meant for the sandbox, in which they are followed.
 */
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, opendir, readdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { EnvironmentError } from "../environments/environment.ts";
import type { LockedSystemPackage } from "./lock.ts";

/** Time to unpack one package: the largest, of some hundred MiB, take seconds. */
const UNPACK_TIMEOUT_MS = 5 * 60_000;
/** Deeper than the folders of any real package. */
const MAX_LAYER_DEPTH = 64;

/** Folders of Debian before its folders were merged into `usr`. */
const MERGED: readonly string[] = ["bin", "lib", "lib32", "lib64", "sbin"];

/** What no program reads. */
const LEFT_OUT: readonly string[] = [
  "usr/share/bug",
  "usr/share/doc",
  "usr/share/info",
  "usr/share/lintian",
  "usr/share/man",
];

interface UnpackOptions {
  /** The folder that becomes the layer; created. */
  readonly layer: string;
  /** For each package its file. */
  readonly files: ReadonlyMap<Pick<LockedSystemPackage, "name">, string>;
  /** Files that it may have. */
  readonly maxFiles: number;
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  readonly signal: AbortSignal;
}

/** Rejects with an `EnvironmentError` that names the package at fault. */
export async function unpackPackages(options: UnpackOptions): Promise<void> {
  const { layer, files, maxFiles, searchPath, signal } = options;
  await mkdir(layer, { recursive: true });
  const room = { files: maxFiles };
  for (const [{ name }, file] of files) {
    signal.throwIfAborted();
    const own = `${layer}.unpacked`;
    try {
      await promisify(execFile)("dpkg-deb", ["--extract", file, own], {
        env: { PATH: searchPath, LC_ALL: "C" },
        timeout: UNPACK_TIMEOUT_MS,
        signal,
      });
      await countEntries(own, name, room);
      await merge({ from: own, to: layer, path: "", name, depth: 0 });
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof EnvironmentError) {
        throw cause;
      }
      const said = String((cause as { stderr?: unknown }).stderr ?? "") || String(cause);
      throw refused(name, `it cannot be unpacked: ${said.trim().split("\n").at(-1)}`, cause);
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  }
  await linkLibraries(layer);
}

async function countEntries(folder: string, name: string, room: { files: number }): Promise<void> {
  for await (const _ of await opendir(folder, { recursive: true })) {
    room.files -= 1;
    if (room.files < 0) {
      throw refused(name, "the packages have too many files: name fewer");
    }
  }
}

interface MergeOptions {
  readonly from: string;
  readonly to: string;
  /** The path of both from their layers; empty at the top. */
  readonly path: string;
  /** The package. */
  readonly name: string;
  readonly depth: number;
}

async function merge({ from, to, path, name, depth }: MergeOptions): Promise<void> {
  if (depth > MAX_LAYER_DEPTH) {
    throw refused(name, `its folders are more than ${MAX_LAYER_DEPTH} deep`);
  }
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const isMerged = path === "" && MERGED.includes(entry.name);
    const inside = isMerged ? `usr/${entry.name}` : join(path, entry.name);
    const target = isMerged ? join(to, inside) : join(to, entry.name);
    if (LEFT_OUT.includes(inside)) {
      continue;
    }
    const there = await lstat(target).catch(() => undefined);
    if (entry.isDirectory()) {
      if (there !== undefined && !there.isDirectory()) {
        throw refused(name, `${inside} is a folder, and in another package it is not`);
      }
      // The folder above a merged one may not be there yet.
      await mkdir(target, { recursive: true, mode: 0o755 });
      await merge({ from: source, to: target, path: inside, name, depth: depth + 1 });
    } else if (entry.isFile() || entry.isSymbolicLink()) {
      if (isMerged || there?.isDirectory() === true) {
        throw refused(name, `${inside} is no folder, and in another package it is one`);
      }
      if (entry.isFile()) {
        const { mode } = await lstat(source);
        await chmod(source, (mode & 0o755) | 0o444);
      }
      await rename(source, target);
    } else {
      throw refused(name, `${inside} is neither a folder, nor a file, nor a link`);
    }
  }
}

/**
 * Libraries that their packages would put among the others when they are installed, by alternatives
 * (`blas/libblas.so.3`), get a link there.
 */
async function linkLibraries(layer: string): Promise<void> {
  for (const triplet of await libraryFolders(layer)) {
    const libraries = join(layer, triplet);
    const there = new Set(await readdir(libraries));
    for (const folder of await readdir(libraries, { withFileTypes: true })) {
      const names = folder.isDirectory() ? await readdir(join(libraries, folder.name)) : [];
      for (const name of names.toSorted()) {
        if (/^lib[^/]*\.so\.\d+$/.test(name) && !there.has(name)) {
          there.add(name);
          await symlink(`${folder.name}/${name}`, join(libraries, name));
        }
      }
    }
  }
}

/** The folders of libraries in a layer, such as `usr/lib/x86_64-linux-gnu`. */
async function libraryFolders(layer: string): Promise<string[]> {
  const entries = await readdir(join(layer, "usr/lib"), { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && /^[a-z0-9_]+-linux-gnu$/.test(entry.name))
    .map(({ name }) => `usr/lib/${name}`);
}

function refused(name: string, why: string, cause?: unknown): EnvironmentError {
  return new EnvironmentError("LOCK_INVALID", `the system package ${name} is not used: ${why}`, {
    isFinal: true,
    cause,
  });
}
