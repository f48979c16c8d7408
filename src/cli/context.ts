/**
 * The login context of the command line, a platform and a token: from
 * `SERVICE_CLOUD_API_KEY` and `SERVICE_CLOUD_API_ENDPOINT`, or else from the
 * file that `tessera cloud login` writes.
 *
 * The file holds a secret. It is written atomically (a temporary file with mode
 * 0600, then a rename) and is never readable by others. A file that others can
 * read is refused, because they may have read it. Messages never quote its
 * content.
 */
import { randomBytes } from "node:crypto";
import { chmod, type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CloudEnvironment } from "../config/cloud.ts";
import { isSendable, parseEndpoint, parseToken } from "./endpoint.ts";
import { CliError, ExitCode } from "./failure.ts";

/** A platform's URL and a token for it. */
export interface Context {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly apiToken: string;
}

/** File of contexts and tokens that the command line keeps. */
const MAX_CONTEXTS_FILE_BYTES = 64 * 1024;
const NOT_LOGGED_IN = { exitCode: ExitCode.unauthenticated, hint: "log in: tessera cloud login" };

/** The path of the context file. */
export function contextPath({ configFolder }: CloudEnvironment): string {
  return join(configFolder, "context.json");
}

/** Returns the current context. Throws when nobody is logged in. */
export async function currentContext(environment: CloudEnvironment): Promise<Context> {
  const context = environmentContext(environment) ?? (await readContext(contextPath(environment)));
  if (context === undefined) {
    throw new CliError("you are not logged in", NOT_LOGGED_IN);
  }
  return context;
}

/** Returns the context from the environment; undefined when it is not set there. */
export function environmentContext(environment: CloudEnvironment): Context | undefined {
  const { apiKey, apiEndpoint } = environment;
  if (apiKey === undefined && apiEndpoint === undefined) {
    return undefined;
  }
  if (apiKey === undefined || apiEndpoint === undefined) {
    const [set, missing] =
      apiKey === undefined
        ? ["SERVICE_CLOUD_API_ENDPOINT", "SERVICE_CLOUD_API_KEY"]
        : ["SERVICE_CLOUD_API_KEY", "SERVICE_CLOUD_API_ENDPOINT"];
    throw new CliError(`${set} is set, but ${missing} is not: set both, or neither`, {
      exitCode: ExitCode.unauthenticated,
    });
  }
  return {
    endpoint: parseEndpoint("SERVICE_CLOUD_API_ENDPOINT", apiEndpoint),
    apiToken: parseToken("SERVICE_CLOUD_API_KEY", apiKey),
  };
}

/** Reads the context file; undefined when it does not exist. */
export async function readContext(path: string): Promise<Context | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (err) {
    if (hasCode(err, "ENOENT") || hasCode(err, "ENOTDIR")) {
      return undefined;
    }
    throw unreadable(path, err);
  }
  try {
    return parseContext(path, await readPrivately(file, path));
  } finally {
    await file.close();
  }
}

async function readPrivately(file: FileHandle, path: string): Promise<string> {
  const { mode, size, uid } = await file.stat();
  // Windows has no file modes; there, the folder belongs to the user.
  if (process.platform !== "win32") {
    if (process.getuid !== undefined && uid !== process.getuid() && process.getuid() !== 0) {
      throw new CliError(`${path} belongs to another user, so the login in it is not yours`, {
        exitCode: ExitCode.unauthenticated,
        hint: "remove it and log in: tessera cloud login",
      });
    }
    if ((mode & 0o077) !== 0) {
      throw new CliError(`${path} holds your token, and others on this machine can read it`, {
        exitCode: ExitCode.unauthenticated,
        hint: `chmod 600 ${path}; if they may have read it, also replace the token: tessera token rotate`,
      });
    }
  }
  if (size > MAX_CONTEXTS_FILE_BYTES) {
    throw broken(path);
  }
  try {
    return await file.readFile("utf8");
  } catch (err) {
    throw unreadable(path, err);
  }
}

function parseContext(path: string, text: string): Context {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser's message would quote the file.
    throw broken(path);
  }
  const { endpoint, api_token: apiToken } = (json ?? {}) as Record<string, unknown>;
  if (typeof endpoint !== "string" || typeof apiToken !== "string" || !isSendable(apiToken)) {
    throw broken(path);
  }
  return { endpoint: parseEndpoint(`the endpoint in ${path}`, endpoint), apiToken };
}

/** Writes the context file atomically. */
export async function writeContext(
  { configFolder }: CloudEnvironment,
  { endpoint, apiToken }: Context,
): Promise<void> {
  const path = join(configFolder, "context.json");
  const fresh = join(configFolder, `context.${randomBytes(6).toString("hex")}.tmp`);
  try {
    await mkdir(configFolder, { recursive: true, mode: 0o700 });
    await chmod(configFolder, 0o700);
    const file = await open(fresh, "wx", 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ endpoint, api_token: apiToken }, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } catch (err) {
    await rm(fresh, { force: true }).catch(() => {
      // The folder is not writable; the error below says so.
    });
    throw new CliError(`the login cannot be kept in ${path}: ${reason(err)}`, {
      hint: "make the folder writable for you, or set SERVICE_CLOUD_API_KEY and SERVICE_CLOUD_API_ENDPOINT instead",
      cause: err,
    });
  }
}

/** Removes the context file, even a broken one; false when it did not exist. */
export async function removeContext(path: string): Promise<boolean> {
  try {
    await rm(path);
    return true;
  } catch (err) {
    if (hasCode(err, "ENOENT") || hasCode(err, "ENOTDIR")) {
      return false;
    }
    throw new CliError(`${path} cannot be removed: ${reason(err)}`, { cause: err });
  }
}

function broken(path: string): CliError {
  return new CliError(`${path} is broken: it is not what tessera cloud login wrote`, {
    exitCode: ExitCode.unauthenticated,
    hint: "log in again, which replaces it: tessera cloud login",
  });
}

function unreadable(path: string, err: unknown): CliError {
  return new CliError(`${path} cannot be read: ${reason(err)}`, {
    exitCode: ExitCode.unauthenticated,
    hint: "remove it and log in again: tessera cloud login",
    cause: err,
  });
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is not a folder",
  EEXIST: "a part of its path is not a folder",
};

function reason(err: unknown): string {
  const code = err instanceof Error && "code" in err ? String(err.code) : "";
  return REASONS[code] ?? (code || "unknown reason");
}

function hasCode(err: unknown, code: string): boolean {
  return err instanceof Error && "code" in err && err.code === code;
}
