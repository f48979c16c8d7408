/**
 * A container image as the root of a sandbox. Its folder is mounted read-only at `/`, and what the
 * sandbox has of the machine is mounted over it, at the path that it has on the machine. What the
 * image lacks of these paths is made in its folder, as the place of a mount: an empty file, or an
 * empty folder in which nothing is ever written, because each sandbox mounts one of its own there.
 *
 * The image is somebody else's, so that no link in it is followed by the node: a path is gone
 * through name by name, and links lead where they would lead inside.
 *
 * There is one loader and one C library for all, because both have fixed paths in every program:
 * the newer of the image's and the machine's, which can run programs that were made for the older.
 * What the image lacks of the machine's other libraries is linked where the loader looks, so that
 * the worker's own program finds what it needs.
 */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { readdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Links on the way to one path, as the kernel takes them. */
const MAX_FOLLOWED_LINKS = 40;
/** The largest C library is some 3 MB. */
const MAX_C_LIBRARY_BYTES = 16 * 1024 ** 2;

/** Where the machine's folders of libraries are inside, by their number. */
const LIBRARIES_INSIDE = "/run/tessera/libraries";
/** Where the machine's loader is inside, for programs that the image must not change. */
const LOADER_INSIDE = "/run/tessera/loader";

/** Where distributions have the C library. */
const LIBRARY_FOLDERS = [
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/lib/x86_64-linux-gnu",
  "/lib/aarch64-linux-gnu",
  "/usr/lib64",
  "/lib64",
  "/usr/lib",
  "/lib",
];

/** The files of the GNU C library: one release each, and no other fits. */
const OF_C_LIBRARY =
  /^(?:ld-linux[\w-]*|lib(?:c|m|mvec|pthread|dl|rt|util|anl|resolv|nsl|nss_(?:files|dns|compat|hesiod|db)|thread_db|BrokenLocale|c_malloc_debug|memusage|pcprofile|SegFault))\.so(?:\.\d+)*$/;

/** A file or folder of the machine, and its path inside. */
export interface Mount {
  readonly path: string;
  readonly inside: string;
}

/** An image that is unpacked on this machine. */
export interface WorkerImage {
  /** The folder that becomes the root. */
  readonly root: string;
  /** The variables that it sets. */
  readonly variables: { readonly [name: string]: string };
  /** What it has of the machine's libraries; see `fitLibraries`. */
  readonly libraries: readonly Mount[];
}

/** The arguments of `bwrap` for a root, before and after those for what is mounted over it. */
interface RootArguments {
  readonly before: readonly string[];
  /** Where a path of the machine is mounted. */
  at(mount: Mount): string;
  readonly after: readonly string[];
}

/** Makes the places for what is mounted over an image, which are the same for all its workers. */
export function rootArguments(root: string, mounts: readonly Mount[]): RootArguments {
  const covers = new Set<string>();
  const places = new Map<string, string>();
  for (const { path, inside } of mounts) {
    const { at, cover } = makePlace(root, inside, statSync(path).isDirectory());
    places.set(inside, at);
    if (cover !== undefined) {
      covers.add(cover);
    }
  }
  return {
    before: ["--ro-bind", root, "/", ...[...covers].flatMap((path) => ["--tmpfs", path])],
    at: ({ inside }) => places.get(inside) ?? inside,
    after: [...covers].flatMap((path) => ["--remount-ro", path]),
  };
}

/**
 * The command by the machine's loader with the machine's libraries, which the image has no part in:
 * for programs that limit what follows.
 */
export function byOwnLoader(
  command: readonly [program: string, ...args: string[]],
): readonly [program: string, ...args: string[]] {
  return [LOADER_INSIDE, "--inhibit-cache", "--library-path", `${LIBRARIES_INSIDE}/0`, ...command];
}

/** A path of a root without links in it; undefined for one that leads nowhere inside. */
function findInRoot(root: string, path: string): string | undefined {
  const { at, missing } = follow(root, path);
  return missing.length === 0 ? at : undefined;
}

/** What `systemLibraries` finds, and a loader. */
export interface MachineLibraries {
  readonly folders: readonly [string, ...string[]];
  readonly loader: string;
}

/**
 * Makes libraries of the machine and of an image fit, and returns what of the machine's is mounted.
 * It is done whenever the image is used, as the machine gets others.
 */
export async function fitLibraries(
  root: string,
  { folders, loader }: MachineLibraries,
): Promise<readonly Mount[]> {
  const [own] = folders;
  const found = [own, ...LIBRARY_FOLDERS]
    .map((folder) => findInRoot(root, `${folder}/libc.so.6`))
    .find((path) => path !== undefined);
  const isNewer =
    found !== undefined &&
    findInRoot(root, loader) !== undefined &&
    releaseOf(join(root, found)) >= releaseOf(join(own, "libc.so.6"));
  const folder = isNewer ? dirname(found) : makeFolder(root, own);
  const there = new Set(await readdir(join(root, folder)));
  for (const [number, each] of folders.entries()) {
    for (const name of await readdir(each)) {
      if (!there.has(name)) {
        there.add(name);
        const target = `${LIBRARIES_INSIDE}/${number}/${name}`;
        await symlink(target, join(root, folder, name)).catch((err) => {
          // Another process has just done so.
          if ((err as NodeJS.ErrnoException).code !== "EEXIST") {
            throw err;
          }
        });
      }
    }
  }
  const machine = [
    ...folders.map((path, number) => ({ path, inside: `${LIBRARIES_INSIDE}/${number}` })),
    { path: loader, inside: LOADER_INSIDE },
  ];
  return isNewer
    ? machine
    : [...machine, { path: loader, inside: loader }, ...replaced(root, { own, folder, found })];
}

/** The machine's C library, at the places of the image's older one. */
function replaced(
  root: string,
  {
    own,
    folder,
    found = "",
  }: { readonly own: string; readonly folder: string; readonly found: string | undefined },
): Mount[] {
  const folders = new Set([folder, ...(found === "" ? [] : [dirname(found)])]);
  return readdirSync(own)
    .filter((name) => OF_C_LIBRARY.test(name) || name === "gconv")
    .flatMap((name) =>
      [...folders].flatMap((each) => {
        const inside = findInRoot(root, `${each}/${name}`);
        const path = realpathSync(join(own, name));
        return inside === undefined ? [] : [{ path, inside }];
      }),
    );
}

/** The release of a C library, as a number to compare; 0 for other text. */
function releaseOf(path: string): number {
  if (statSync(path).size > MAX_C_LIBRARY_BYTES) {
    return 0;
  }
  const [, major = 0, minor = 0] =
    /GNU C Library [^\n]{0,200}? version (\d{1,3})\.(\d{1,4})/.exec(readFileSync(path, "latin1")) ??
    [];
  return Number(major) * 10_000 + Number(minor);
}

interface Place {
  readonly at: string;
  /** An empty folder on the way, which each sandbox covers with one of its own. */
  readonly cover?: string;
}

/** Where a path is in a root, with a place to mount at, which is made if it is missing. */
function makePlace(root: string, path: string, isFolder: boolean): Place {
  const { at, missing, isEmpty } = follow(root, path);
  const [first] = missing;
  if (first === undefined) {
    if (lstatSync(join(root, at)).isDirectory() !== isFolder) {
      throw misplaced(at, path);
    }
    return { at };
  }
  const whole = [at, ...missing].join("/");
  if (isEmpty && at !== "") {
    return { at: whole, cover: at };
  }
  if (missing.length === 1 && !isFolder) {
    writeFileSync(join(root, whole), "");
    return { at: whole };
  }
  const made = `${at}/${first}`;
  mkdirSync(join(root, made), { recursive: true });
  return { at: whole, ...(missing.length > 1 && { cover: made }) };
}

function makeFolder(root: string, path: string): string {
  const { at, missing } = follow(root, path);
  const whole = [at, ...missing].join("/");
  mkdirSync(join(root, whole), { recursive: true });
  return whole;
}

interface Followed {
  /** The last folder or file on the way that is there, without links in its path. */
  readonly at: string;
  /** The names that are not there. */
  readonly missing: readonly string[];
  /** It is a folder with nothing in it. */
  readonly isEmpty: boolean;
}

/** Follows a path in a root as a process does for which that is the root. */
function follow(root: string, path: string): Followed {
  const rest = path.split("/").filter((name) => name !== "" && name !== ".");
  let at = "";
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "..") {
      at = at === "" ? "" : dirname(at).replace(/^\/$/, "");
      continue;
    }
    const next = `${at}/${name}`;
    const found = lstatSync(join(root, next), { throwIfNoEntry: false });
    if (found === undefined) {
      // A link may lead through what is not there, and back.
      if (rest.includes("..")) {
        throw misplaced(next, path);
      }
      return {
        at,
        missing: [name, ...rest],
        isEmpty: readdirSync(join(root, at)).length === 0,
      };
    }
    if (found.isSymbolicLink()) {
      links += 1;
      if (links > MAX_FOLLOWED_LINKS) {
        throw misplaced(next, path);
      }
      const target = readlinkSync(join(root, next));
      rest.unshift(...target.split("/").filter((each) => each !== "" && each !== "."));
      at = target.startsWith("/") ? "" : at;
    } else if (rest.length > 0 && !found.isDirectory()) {
      throw misplaced(next, path);
    } else {
      at = next;
    }
  }
  return { at, missing: [], isEmpty: false };
}

function misplaced(at: string, path: string): Error {
  return new Error(
    `its image has ${at} as something else than what the sandbox has at ${path}: a file where a folder is, the other way round, or a link that leads nowhere; remove it from the image`,
  );
}
