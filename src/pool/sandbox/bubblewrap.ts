/**
 * The command line of bubblewrap (`bwrap`) around a worker. Inside, the worker has
 * namespaces of its own (user, processes, IPC, host name, mounts, network), no
 * capability, and a file system that holds the machine's libraries and
 * what it was given, all read-only but for its scratch folder.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { MachineLibraries, Mount, WorkerImage } from "./image.ts";
import { rootArguments } from "./image.ts";
import { isIn, layerArguments, libraryFolder } from "./layer.ts";

/** Who a worker is inside: the user and the group `nobody`. */
const NOBODY = "65534";
const HOST_NAME = "worker";

/**
 * What is at `/dev/zero` inside: it reads as zeros, too, and cannot be mapped, whereas a shared
 * mapping of the other is memory that counts nowhere.
 */
const ZEROS = existsSync("/dev/full") ? "/dev/full" : "/dev/null";

/**
 * What is in proc(5) besides processes: what tells of the machine's kernel, and what changes it,
 * for a node that runs as root.
 */
function kernelFiles(): string[] {
  return readdirSync("/proc", { withFileTypes: true })
    .filter((entry) => !/^\d+$/.test(entry.name) && !entry.isSymbolicLink())
    .map(({ name }) => `/proc/${name}`);
}

/** The dynamic loader has one fixed path in each architecture's programs. */
const LOADERS = [
  "/lib64/ld-linux-x86-64.so.2",
  "/lib/ld-linux-aarch64.so.1",
  "/lib/ld-musl-x86_64.so.1",
  "/lib/ld-musl-aarch64.so.1",
];

export interface SandboxContents {
  /** Files and folders that may be read, by absolute paths, which are the same inside. */
  readonly read: readonly string[];
  /** Folders that may be written; the first is the working folder. */
  readonly writable: readonly [string, ...string[]];
  /** Device files that may be used, by absolute paths below `/dev`. Default: none. */
  readonly devices?: readonly string[];
  /** Size of `/dev/shm`, in bytes, which may be written then. Default: workers have no `/dev/shm`. */
  readonly sharedMemoryBytes?: number;
  /** Files that have another path inside. */
  readonly mounted?: readonly Mount[];
  /** The folder with the files of system packages. Default: none. */
  readonly layer?: string | undefined;
  /** The image that is the root. Default: the machine's libraries alone. */
  readonly image?: WorkerImage | undefined;
  /**
   * The descriptor from which bubblewrap reads the seccomp filter, to its end, before it starts
   * any process.
   */
  readonly filterDescriptor: number;
  /** The descriptor to which bubblewrap writes the process id of its child. */
  readonly infoDescriptor: number;
}

/** The arguments of `bwrap` before the command that it runs. */
export function bubblewrapArguments(contents: SandboxContents): string[] {
  const { writable, devices = [], filterDescriptor, infoDescriptor } = contents;
  const { sharedMemoryBytes, image } = contents;
  const files = image === undefined ? besideLibraries(contents) : overImage(image, contents);
  return [
    ...["--unshare-user", "--uid", NOBODY, "--gid", NOBODY, "--disable-userns"],
    ...["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-cgroup-try"],
    ...["--unshare-uts", "--hostname", HOST_NAME],
    ...["--cap-drop", "ALL", "--die-with-parent", "--new-session"],
    ...files.root,
    ...["--proc", "/proc"],
    // The driver of a GPU names its threads there, and gives up where it cannot.
    ...(devices.length === 0
      ? ["--remount-ro", "/proc"]
      : kernelFiles().flatMap((path) => ["--ro-bind-try", path, path])),
    ...["--dev", "/dev"],
    ...["--dev-bind", ZEROS, "/dev/zero"],
    ...devices.flatMap((path) => ["--dev-bind", path, path]),
    ...(sharedMemoryBytes === undefined
      ? []
      : ["--size", String(sharedMemoryBytes), "--tmpfs", "/dev/shm"]),
    ...["--remount-ro", "/dev"],
    ...files.mounts,
    ...["--chdir", writable[0]],
    ...files.end,
    ...["--add-seccomp-fd", String(filterDescriptor), "--info-fd", String(infoDescriptor)],
    "--",
  ];
}

/** The arguments for what a sandbox has of files. */
interface FileArguments {
  /** Before the file systems of the kernel. */
  readonly root: readonly string[];
  readonly mounts: readonly string[];
  readonly end: readonly string[];
}

/** A file system with nothing but the machine's libraries, a layer, and what it was given. */
function besideLibraries(contents: SandboxContents): FileArguments {
  const { writable, mounted = [] } = contents;
  const { libraries, read, layer } = withLayer(contents);
  return {
    root: [],
    mounts: [
      ...layer,
      ...libraries.flatMap((path) => ["--ro-bind", path, path]),
      ...["--ro-bind-try", "/etc/localtime", "/etc/localtime"],
      ...read.flatMap((path) => ["--ro-bind-try", path, path]),
      ...mounted.flatMap(({ path, inside }) => ["--ro-bind", path, inside]),
      ...writable.flatMap((path) => ["--bind", path, path]),
    ],
    end: ["--remount-ro", "/"],
  };
}

/** The folder in the scratch folder that is `/tmp` over an image. */
const TEMPORARY_NAME = ".tmp";

/** An image, with what it was given mounted over it. */
function overImage(
  { root, libraries }: WorkerImage,
  { read, writable, mounted = [] }: SandboxContents,
): FileArguments {
  const temporary = join(writable[0], TEMPORARY_NAME);
  mkdirSync(temporary, { recursive: true });
  const asOnMachine = (path: string): Mount => ({ path, inside: path });
  const files = [...libraries, ...read.map(asOnMachine), ...mounted];
  const folders = [{ path: temporary, inside: "/tmp" }, ...writable.map(asOnMachine)];
  // Below the temporary folder, places are made in that.
  const inRoot = [...files, ...folders].filter(({ inside }) => !isIn(inside, "/tmp"));
  const { before, at, after } = rootArguments(root, inRoot);
  return {
    root: before,
    mounts: [
      ...["--bind", temporary, "/tmp"],
      ...files.flatMap((each) => ["--ro-bind", each.path, at(each)]),
      ...folders.slice(1).flatMap((each) => ["--bind", each.path, at(each)]),
    ],
    end: [...after],
  };
}

/** What is there of the machine, and the arguments for a layer beside it. */
function withLayer({ read, writable, mounted = [], layer }: SandboxContents): {
  readonly libraries: readonly string[];
  readonly read: readonly string[];
  readonly layer: readonly string[];
} {
  const libraries = systemLibraries();
  const replaced = layer === undefined ? undefined : libraryFolder(libraries);
  if (layer === undefined || replaced === undefined) {
    return { libraries, read, layer: [] };
  }
  const kept = (path: string): boolean => !isIn(path, replaced);
  const [others, files] = [libraries.filter(kept), read.filter(kept)];
  const inside = [...writable, ...mounted.map((one) => one.inside)];
  const taken = [...others, ...files, ...inside, "/dev", "/proc", "/run", "/etc/localtime"];
  const args = layerArguments(layer, { libraries: replaced, taken });
  if (!taken.some((path) => isIn(path, "/tmp"))) {
    // For programs that know no other place for temporary files.
    args.push("--symlink", writable[0], "/tmp");
  }
  return { libraries: others, read: files, layer: args };
}

let found: readonly string[] | undefined;

/**
 * The folders of the machine's shared libraries, which native code of services needs, too,
 * and its dynamic loader.
 */
export function systemLibraries(): readonly string[] {
  found ??= [
    ...new Set([
      ...mappedLibraries().map((path) => dirname(path)),
      ...LOADERS.filter((path) => existsSync(path)),
    ]),
  ];
  return found;
}

/** The machine's folders of libraries, that of the GNU C library first; undefined with another one. */
export function machineLibraries(): MachineLibraries | undefined {
  const all = systemLibraries();
  const loader = all.find((path) => /\/ld-linux[^/]*$/.test(path));
  const folders = all.filter((path) => !LOADERS.includes(path));
  const own = libraryFolder(folders);
  return own === undefined || loader === undefined
    ? undefined
    : { folders: [own, ...folders.filter((path) => path !== own)], loader };
}

/** The shared libraries that this process has loaded when it started. */
function mappedLibraries(): string[] {
  const mapped = readFileSync("/proc/self/maps", "utf8").matchAll(/ (\/\S+\.so(?:\.\d+)*)$/gm);
  return [...mapped].flatMap(([, path]) => (path === undefined ? [] : [path]));
}
