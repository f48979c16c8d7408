/** A service in Python, which its workers import from where it is. */
import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { PythonCode } from "../../pool/worker-options.ts";
import type { ServiceEntry } from "../../protocol/messages.ts";
import { ServiceFileError } from "../bundle.ts";
import { findInterpreter, type PythonOptions } from "./interpreter.ts";

export interface PythonService {
  readonly code: PythonCode;
  /** The path of its file; for a module, that of the folder from which it is imported. */
  readonly servicePath: string;
  /** The sources beside it, for `--watch`. */
  readonly watchFiles: readonly string[];
  readonly warnings: readonly string[];
}

/** Sources that are watched: more are packages that somebody put beside the service. */
const MAX_WATCHED_FILES = 2_000;

/** Folders without sources of the service. */
const FOREIGN_FOLDERS = new Set(["__pycache__", "node_modules", "site-packages", "venv", "env"]);

/**
 * Finds the service and its interpreter; a module is found from the working folder. Rejects
 * with a `ServiceFileError` for what is not there.
 */
export async function openPythonService(
  entry: ServiceEntry,
  python: PythonOptions,
): Promise<PythonService> {
  const isFile = entry.module.endsWith(".py");
  const servicePath = isFile ? await findFile(entry.module) : join(process.cwd(), entry.module);
  const folder = dirname(servicePath);
  const interpreter = await findInterpreter(folder, python);
  const module = isFile ? servicePath : entry.module;
  const code = { ...entry, module, interpreter, env: python.env };
  const watchFiles = await sourcesIn(folder, MAX_WATCHED_FILES);
  return { code, servicePath, watchFiles, warnings: [] };
}

/** The real path of a file. Rejects with a `ServiceFileError` for anything else. */
export async function findFile(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await stat(real)).isFile()) {
      return real;
    }
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    throw new ServiceFileError(
      code === "ENOENT" || code === "ENOTDIR"
        ? `service file ${path} does not exist`
        : `service file ${path} cannot be read: ${code}`,
      { cause: err },
    );
  }
  throw new ServiceFileError(`service file ${path} is not a regular file`);
}

/** The sources in a folder and below, without those of environments; a bounded number. */
export async function sourcesIn(folder: string, limit: number): Promise<string[]> {
  const found: string[] = [];
  const folders = [resolve(folder)];
  for (const current of folders) {
    const entries = await readdir(current, { withFileTypes: true }).catch((): Dirent[] => []);
    // A virtual environment, whatever it is called.
    if (entries.some(({ name }) => name === "pyvenv.cfg")) {
      continue;
    }
    for (const entry of entries) {
      if (entry.isDirectory() && !entry.name.startsWith(".") && !FOREIGN_FOLDERS.has(entry.name)) {
        folders.push(join(current, entry.name));
      } else if (entry.isFile() && entry.name.endsWith(".py")) {
        found.push(join(current, entry.name));
      }
    }
    if (found.length > limit || folders.length > limit) {
      break;
    }
  }
  return found.slice(0, limit);
}
