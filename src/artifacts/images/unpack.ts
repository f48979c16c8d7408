/**
 * Unpacks an image that was fetched, by umoci, in the kernel's sandbox, without any right: it makes
 * no device, and gives all files to one user. What it made is then gone through, and nothing in it
 * is followed: folders, plain files and links stay, without bits that give rights (setuid, setgid).
 */
import { chmod, lstat, mkdir, opendir, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import {
  environmentBytes,
  MAX_ENVIRONMENT_BYTES,
  variableFault,
} from "../../deployments/environment.ts";
import type { KernelSandbox } from "../../pool/sandbox/sandbox.ts";
import { EnvironmentError } from "../environments/environment.ts";
import { runIsolated } from "./isolated.ts";
import { type ImageLayout, readLayout } from "./layout.ts";
import { toolPath } from "./registry.ts";

/** Time to unpack an image: one of 5 GiB takes two minutes. */
const UNPACK_IMAGE_TIMEOUT_MS = 30 * 60_000;
/** Deeper than the folders of any real image. */
const MAX_IMAGE_DEPTH = 256;

/** What a sandbox has of its own: folders of an image with these names are empty. */
const OF_THE_SANDBOX = ["dev", "proc", "run", "sys", "tmp"];

/** What the loader reads before a program's limits are in force. */
const PRELOAD = "etc/ld.so.preload";

/** Variables that tell an interpreter of another installation than its own. */
const OF_PYTHON = ["PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"];

interface UnpackOptions {
  /** The folder with the layout `oci`, which umoci may write. */
  readonly folder: string;
  /** The folder that becomes the root; it is made, on the same file system. */
  readonly root: string;
  /** Files that it may have. */
  readonly maxFiles: number;
  readonly sandbox: KernelSandbox;
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  readonly signal: AbortSignal;
}

/** The variables that an image sets. */
export type ImageVariables = { readonly [name: string]: string };

/** Unpacks it, and returns its variables. Rejects with an `EnvironmentError`. */
export async function unpackImage(options: UnpackOptions): Promise<ImageVariables> {
  const { folder, root, maxFiles, sandbox, searchPath, signal } = options;
  const { config } = await readLayout(join(folder, "oci"));
  const variables = variablesOf(config);
  const end = await runIsolated({
    sandbox,
    program: toolPath("umoci", searchPath),
    args: ["--log", "error", "raw", "unpack", "--rootless", "--image", "oci:image", "root"],
    folder,
    timeoutMs: UNPACK_IMAGE_TIMEOUT_MS,
    signal,
  });
  if (end.code !== 0) {
    const lines = end.stderr.trim().split("\n");
    throw refused(
      end.isLate
        ? "unpacking it takes too long"
        : `umoci does not unpack it: ${lines.at(-1)?.trim().slice(0, 500)}`,
    );
  }
  await rename(join(folder, "root"), root);
  if (!(await lstat(root)).isDirectory()) {
    throw refused("umoci made no folder of it");
  }
  await tidy(root, { path: "", depth: 0 }, { files: maxFiles }).catch((err: unknown) => {
    throw err instanceof EnvironmentError
      ? err
      : refused(`it has what cannot be kept: ${(err as Error).message.slice(0, 300)}`, err);
  });
  const settings = await lstat(join(root, "etc")).catch(() => undefined);
  if (settings !== undefined && !settings.isDirectory()) {
    // It could lead to where workers write.
    throw refused("its /etc is no folder");
  }
  await rm(join(root, PRELOAD), { recursive: true, force: true });
  for (const name of OF_THE_SANDBOX) {
    await rm(join(root, name), { recursive: true, force: true });
    await mkdir(join(root, name), { mode: 0o755 });
  }
  return variables;
}

interface Place {
  /** From the root, with a slash before each name. */
  readonly path: string;
  readonly depth: number;
}

async function tidy(root: string, { path, depth }: Place, room: { files: number }): Promise<void> {
  if (depth > MAX_IMAGE_DEPTH) {
    throw refused(`its folders are more than ${MAX_IMAGE_DEPTH} deep`);
  }
  const folder = `${root}${path}`;
  await chmod(folder, 0o755);
  for await (const entry of await opendir(folder)) {
    room.files -= 1;
    if (room.files < 0) {
      throw refused("it has too many files: make a smaller one");
    }
    const inside = `${path}/${entry.name}`;
    if (entry.name.includes("\ufffd")) {
      throw refused(`the name of ${inside} is no UTF-8`);
    }
    if (entry.isDirectory()) {
      await tidy(root, { path: inside, depth: depth + 1 }, room);
    } else if (entry.isFile()) {
      const { mode } = await lstat(`${root}${inside}`);
      await chmod(`${root}${inside}`, (mode & 0o755) | 0o444);
    } else if (!entry.isSymbolicLink()) {
      await unlink(`${root}${inside}`);
    }
  }
}

/** The variables of the configuration (OCI image specification, `config.Env`). */
function variablesOf({ config }: ImageLayout["config"]): ImageVariables {
  const { Env } = (config ?? {}) as { readonly Env?: unknown };
  const given: unknown[] = Array.isArray(Env) ? Env : [];
  const variables = Object.fromEntries(
    given.flatMap((each) => {
      const [, name = "", value = ""] = /^([^=]+)=([^\0]*)$/s.exec(String(each)) ?? [];
      const isTaken = variableFault(name) === undefined && !OF_PYTHON.includes(name);
      return isTaken ? [[name, value]] : [];
    }),
  );
  if (environmentBytes(variables) > MAX_ENVIRONMENT_BYTES) {
    throw refused(`its variables have more than ${MAX_ENVIRONMENT_BYTES} bytes`);
  }
  return variables;
}

function refused(why: string, cause?: unknown): EnvironmentError {
  return new EnvironmentError("LOCK_INVALID", `its image is not used: ${why}`, {
    isFinal: true,
    cause,
  });
}
