/**
 * System packages in a sandbox: their files are where programs look for them, such as `/usr/bin`,
 * `/usr/share` and `/etc`, beside what the sandbox has of the machine.
 *
 * The folder of packages, the layer, is mounted once, and its entries are linked into the file
 * system; a folder in which the sandbox has something of the machine is gone through. The folder
 * of the C library is the exception: the layer has one of the same path, which takes its place,
 * and in which every library that the packages lack is a link to the machine's
 * (`linkMachineLibraries`). So all libraries are found where the loader looks by itself, also by
 * programs that are started with an empty environment.
 */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";

/** Where a layer is mounted. */
const LAYER_INSIDE = "/run/tessera/packages";
/** Where the machine's folder of the C library is, when a layer takes its place. */
const LIBRARIES_INSIDE = "/run/tessera/libraries";

/** Links that one sandbox has: bubblewrap takes some 9,000 arguments. */
const MAX_LAYER_LINKS = 2_000;

/** Debian's folders from before they were merged into `/usr`. */
const MERGED = ["bin", "lib", "sbin"];

interface MachineFolders {
  /** The folder of the machine's C library. */
  readonly libraries: string;
  /** What else of the machine the sandbox has, by absolute paths. */
  readonly taken: readonly string[];
}

/** The arguments of `bwrap` that put a layer beside what is there of the machine. */
export function layerArguments(layer: string, { libraries, taken }: MachineFolders): string[] {
  const links = linksOf(layer, "", taken);
  const merged = MERGED.filter((name) => !taken.some((path) => isIn(path, `/${name}`)));
  if (links.length > MAX_LAYER_LINKS) {
    throw new Error(
      `its system packages need ${links.length} links; at most ${MAX_LAYER_LINKS} are made`,
    );
  }
  return [
    ...["--ro-bind", layer, LAYER_INSIDE, "--ro-bind", libraries, LIBRARIES_INSIDE],
    ...links.flatMap((path) => ["--symlink", `${LAYER_INSIDE}${path}`, path]),
    ...merged.flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
  ];
}

/** The paths below a path of the layer at which a link leads into it. */
function linksOf(layer: string, path: string, taken: readonly string[]): string[] {
  return readdirSync(join(layer, path), { withFileTypes: true }).flatMap((entry) => {
    const inside = `${path}/${entry.name}`;
    if (taken.some((one) => isIn(inside, one))) {
      return [];
    }
    return entry.isDirectory() && taken.some((one) => isIn(one, inside))
      ? linksOf(layer, inside, taken)
      : [inside];
  });
}

/** Whether a path is a folder or in it. */
export function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** The folder among these that has the C library. */
export function libraryFolder(folders: readonly string[]): string | undefined {
  return folders.find((folder) => existsSync(join(folder, "libc.so.6")));
}

/**
 * Links, in the layer's folder of the C library, to all of the machine's that the packages do not
 * bring. They are made again whenever the layer is used, as the machine gets others.
 */
export async function linkMachineLibraries(layer: string, libraries: string): Promise<void> {
  const own = join(layer, libraries);
  await mkdir(own, { recursive: true });
  const there = new Set(await readdir(own));
  for (const name of await readdir(libraries)) {
    if (!there.has(name)) {
      await symlink(`${LIBRARIES_INSIDE}/${name}`, join(own, name)).catch((err) => {
        // Another process has just done so.
        if ((err as NodeJS.ErrnoException).code !== "EEXIST") {
          throw err;
        }
      });
    }
  }
}
