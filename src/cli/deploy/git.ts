/** Where the code that is deployed is in git: commit, branch and the message's first line. */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";

/** How long git may take: a deploy does not wait for a slow disk to say what it deploys. */
const GIT_TIMEOUT_MS = 3_000;
/** Bytes of what git writes that are read. */
const MAX_GIT_OUTPUT_BYTES = 1024 * 1024;
/** Characters of a message, which the platform keeps. */
const MAX_GIT_MESSAGE_CHARACTERS = 200;
/** Characters of a branch, which the platform keeps. */
const MAX_GIT_BRANCH_CHARACTERS = 255;

interface GitSource {
  readonly commit: string;
  readonly branch: string;
  readonly message: string;
  readonly dirty: boolean;
}

interface GitOptions {
  /** The variables of this process. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/**
 * What git says of the folder of a service; undefined where there is no repository, no commit, or
 * no git. Remotes, which may have credentials, are not looked at. Of the changes that are not
 * committed, only those below the folder count.
 */
export async function gitSource(path: string, options: GitOptions): Promise<GitSource | undefined> {
  try {
    const folder = (await stat(path)).isDirectory() ? path : dirname(path);
    const git = (...args: readonly string[]) => run(args, { ...options, folder });
    const [commit = "", message = ""] = (await git("log", "-1", "--format=%H%n%s")).split("\n");
    if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(commit)) {
      return undefined;
    }
    const branch = await git("branch", "--show-current");
    const changes = await git("status", "--porcelain", "--", ".");
    return {
      commit,
      branch: shown(branch, MAX_GIT_BRANCH_CHARACTERS),
      message: shown(message, MAX_GIT_MESSAGE_CHARACTERS),
      dirty: changes !== "",
    };
  } catch {
    // Nothing is missing without it.
    return undefined;
  }
}

/** Without control characters, and not longer than this, whole characters only. */
function shown(text: string, maxCharacters: number): string {
  return [...text.replace(/\p{Cc}/gu, " ").trim()].slice(0, maxCharacters).join("");
}

function run(
  args: readonly string[],
  { folder, env, signal }: GitOptions & { readonly folder: string },
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      "git",
      // No program that the repository's own settings name is started, and nothing is written to it.
      ["-c", "core.fsmonitor=false", "-c", "log.showSignature=false", ...args],
      {
        cwd: folder,
        env: { ...env, GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" },
        timeout: GIT_TIMEOUT_MS,
        maxBuffer: MAX_GIT_OUTPUT_BYTES,
        signal,
      },
      (err, stdout) => (err === null ? resolve(stdout.trimEnd()) : reject(err)),
    );
  });
}
