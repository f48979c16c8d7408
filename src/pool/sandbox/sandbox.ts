/**
 * Which boundary this machine gives to workers:
 * - `kernel`: bubblewrap with a seccomp filter. Even native code inside has no
 *   files, processes or network of the machine.
 * - `permission`: Node's permission model, which its documentation calls no
 *   protection against malicious code.
 *
 * The level is probed by starting a sandboxed program: AppArmor, the seccomp
 * filter of a container engine, or a sysctl may forbid an installed bubblewrap.
 */
import { execFile } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { MemoryGroups } from "./memory-groups.ts";
import { type FilterOptions, seccompFilter } from "./seccomp.ts";
import { spawnSandboxed } from "./spawn.ts";
import type { Architecture } from "./system-calls.ts";

export type SandboxLevel = "kernel" | "permission";

/** What the operator asks for; `auto` is the strongest level that there is. */
export type SandboxMode = SandboxLevel | "auto";

export interface KernelSandbox {
  readonly level: "kernel";
  /** The path of `bwrap`. */
  readonly bubblewrap: string;
  /** The path of `prlimit`, which sets limits of a process; undefined: the machine has not got it. */
  readonly prlimit: string | undefined;
  /** The control groups of workers, one for the memory of each; undefined on a machine without groups. */
  readonly memoryGroups: MemoryGroups | undefined;
  /** What holds the memory of each worker, for the operator. */
  readonly memoryHeldBy: string;
  /** Makes the seccomp filter of this architecture. */
  filter(options?: FilterOptions): Buffer;
}

interface PermissionSandbox {
  readonly level: "permission";
  /** The path of `setpriv`, which has the kernel end workers with their node; undefined: the machine has not got it. */
  readonly setpriv: string | undefined;
  /** As for the other level. */
  readonly prlimit: string | undefined;
  readonly memoryGroups: MemoryGroups | undefined;
  readonly memoryHeldBy: string;
  /** Why it is not `kernel`, and what to do about it; undefined where the operator chose it. */
  readonly shortfall: string | undefined;
}

export type Sandbox = KernelSandbox | PermissionSandbox;

/** How long a program may take to say its version, sandboxed or under `setpriv`. */
const PROBE_TIMEOUT_MS = 10_000;

const ARCHITECTURES: readonly string[] = ["x64", "arm64"] satisfies Architecture[];

/**
 * Finds the sandbox for a mode; `path` has the folders of programs, as `PATH` has them.
 * Rejects when the mode is `kernel` and this machine has none.
 */
export async function findSandbox(mode: SandboxMode, path: string): Promise<Sandbox> {
  const shortfall = mode === "permission" ? undefined : await kernelSandbox(path);
  if (typeof shortfall === "object") {
    return shortfall;
  }
  if (mode === "kernel") {
    throw new Error(
      `--sandbox kernel: ${shortfall}. Or start with --sandbox permission, and host only services that you trust`,
    );
  }
  const setpriv = await findTool("setpriv", ["--pdeathsig", "KILL"], path);
  return { level: "permission", setpriv, ...(await processHolders(path)), shortfall };
}

/** The sandbox, or why workers cannot have one. */
async function kernelSandbox(path: string): Promise<KernelSandbox | string> {
  if (process.platform !== "linux" || !ARCHITECTURES.includes(process.arch)) {
    return "it needs Linux on x64 or arm64";
  }
  const bubblewrap = findProgram("bwrap", path);
  if (bubblewrap === undefined) {
    return "bubblewrap is not installed: install the package bubblewrap (apt, dnf, apk, pacman), version 0.8 or later";
  }
  const sandbox: KernelSandbox = {
    level: "kernel",
    bubblewrap,
    ...(await processHolders(path)),
    filter: (options) => seccompFilter(process.arch as Architecture, options),
  };
  const complaint = await probe(sandbox);
  return complaint === undefined ? sandbox : explain(complaint);
}

/** Starts Node in the sandbox. Returns what went wrong. */
async function probe({ bubblewrap, filter }: KernelSandbox): Promise<string | undefined> {
  const writable = mkdtempSync(join(tmpdir(), "tessera-probe-"));
  try {
    const { child } = spawnSandboxed({
      bubblewrap: [bubblewrap],
      filter: filter(),
      read: [realpathSync(process.execPath)],
      writable: [writable],
      program: realpathSync(process.execPath),
      args: ["--version"],
      env: {},
    });
    const { stdout, stderr } = child;
    if (stdout === null || stderr === null) {
      return "it could not be started";
    }
    const failed = Promise.withResolvers<string>();
    child.once("error", ({ message }) => failed.resolve(message));
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      failed.resolve(`it started no program within ${PROBE_TIMEOUT_MS / 1_000} s`);
    }, PROBE_TIMEOUT_MS);
    // What it started may hold its output open after its end.
    const output = Promise.all([text(stdout), text(stderr)]);
    output.catch(() => {});
    const done = await Promise.race([failed.promise, output]);
    clearTimeout(timer);
    if (typeof done === "string") {
      stdout.destroy();
      stderr.destroy();
      return done;
    }
    return done[0].trim() === process.version ? undefined : done[1].trim() || "it gave no answer";
  } finally {
    rmSync(writable, { recursive: true, force: true });
  }
}

/** What bubblewrap complained of, with the remedy. */
function explain(complaint: string): string {
  const [line = ""] = complaint.split("\n");
  return `bubblewrap is installed but does not work here (${line}): ${remedy(line)}`;
}

function remedy(complaint: string): string {
  if (/unknown option/i.test(complaint)) {
    return "version 0.8 or later is needed";
  }
  if (readSetting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return "AppArmor keeps user namespaces from it; install the profile bwrap-userns-restrict from the package apparmor-profiles, or set the sysctl kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (readSetting("kernel/unprivileged_userns_clone") === "0") {
    return "set the sysctl kernel.unprivileged_userns_clone=1";
  }
  if (readSetting("user/max_user_namespaces") === "0") {
    return "set the sysctl user.max_user_namespaces to 10000 or more";
  }
  return isContainer()
    ? "the container engine forbids namespaces; start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined (in Podman unmask=/proc/*), which the sandbox of each worker replaces"
    : "the kernel must allow this user to create user namespaces";
}

function readSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Engines leave a file, but in read-only containers; there, the node is the first process. */
function isContainer(): boolean {
  const marks = ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io"];
  return process.pid === 1 || marks.some((path) => existsSync(path));
}

/**
 * The path of a program that starts another one by these arguments; of those of the same name,
 * that of util-linux knows them.
 */
async function findTool(
  name: string,
  args: readonly string[],
  path: string,
): Promise<string | undefined> {
  const program = process.platform === "linux" ? findProgram(name, path) : undefined;
  if (program === undefined) {
    return undefined;
  }
  const options = { timeout: PROBE_TIMEOUT_MS, env: {} };
  return await promisify(execFile)(program, [...args, program, "--version"], options).then(
    () => program,
    () => undefined,
  );
}

/** What holds the processes of both levels. */
async function processHolders(
  path: string,
): Promise<Pick<Sandbox, "prlimit" | "memoryGroups" | "memoryHeldBy">> {
  const groups = MemoryGroups.find();
  const isFound = typeof groups !== "string";
  return {
    prlimit: await findTool("prlimit", ["--core=0"], path),
    memoryGroups: isFound ? groups : undefined,
    memoryHeldBy: isFound
      ? "a control group of the kernel for each worker, and the node's watch"
      : `the node's watch alone: there is no control group for each worker (${groups})`,
  };
}

/** The path of a program in the folders of a `PATH`; undefined where it is missing. */
export function findProgram(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder.startsWith("/"))
    .map((folder) => join(folder, name))
    .find((file) => isExecutable(file));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
