/**
 * Places packages that stay files in an artifact: under `node_modules` at its root,
 * as npm would install them, however they are installed here (hoisted, nested, or
 * linked from a store). A package goes to the root unless another of its name is
 * there; then into the package that needs it. The walk is breadth-first, so that no
 * later package shadows one that was already found.
 */
import type { InstalledPackage } from "./packages.ts";
import type { Dependency } from "./trace.ts";

const FOLDER = "node_modules";
/** Nesting of `node_modules` folders that is followed: deeper than any real tree. */
const MAX_NESTED_PACKAGES = 64;

/** For the folder of each package, its paths in the artifact. The first is reachable from the root. */
export function placePackages(
  packages: readonly InstalledPackage[],
  dependencies: readonly Dependency[],
): Map<string, string[]> {
  const tree = new Tree(dependencies);
  tree.addAll("", tree.needs(undefined));
  // Packages that nothing imports by name, such as a library that native code links with.
  tree.addAll("", sorted(packages.filter(({ root }) => !tree.places.has(root))));
  return tree.places;
}

class Tree {
  readonly places = new Map<string, string[]>();
  readonly #needs = new Map<string | undefined, Map<string, InstalledPackage>>();
  /** The folder of the package at each path. */
  readonly #taken = new Map<string, string>();
  #duplicates = 0;

  constructor(dependencies: readonly Dependency[]) {
    for (const { from, name, to } of dependencies) {
      if (from?.root !== to.root) {
        const needs = this.#needs.get(from?.root) ?? new Map<string, InstalledPackage>();
        // Two of one name can only be needed by the service's modules, from folders apart.
        needs.set(`${name}\n${to.root}`, { name, root: to.root });
        this.#needs.set(from?.root, needs);
      }
    }
  }

  /** The dependencies of a package, or of the service (undefined). */
  needs(root: string | undefined): InstalledPackage[] {
    return sorted([...(this.#needs.get(root)?.values() ?? [])]);
  }

  /** Places the dependencies of the package at `from`, and then theirs. */
  addAll(from: string, packages: readonly InstalledPackage[]): void {
    const queue = [{ from, packages, depth: 0 }];
    for (const { from, packages, depth } of queue) {
      for (const { name, root } of packages) {
        const place = this.#place(from, name, root);
        if (place !== undefined && depth < MAX_NESTED_PACKAGES) {
          queue.push({ from: place, packages: this.needs(root), depth: depth + 1 });
        }
      }
    }
  }

  /** Its new path; undefined when `from` finds it already. */
  #place(from: string, name: string, root: string): string | undefined {
    const found = this.#resolve(from, name);
    if (found === root) {
      return undefined;
    }
    const place = this.#free(found === undefined ? "" : from, name);
    this.#taken.set(place, root);
    this.places.set(root, [...(this.places.get(root) ?? []), place]);
    return place;
  }

  #free(from: string, name: string): string {
    const place = [from, FOLDER, name].filter(Boolean).join("/");
    if (!this.#taken.has(place)) {
      return place;
    }
    // A second package of this name that the service itself needs: it imports it by this path.
    this.#duplicates += 1;
    return `${FOLDER}/.besides/${this.#duplicates}/${FOLDER}/${name}`;
  }

  /** The package that Node resolves from a folder: in its own `node_modules` or in those above. */
  #resolve(from: string, name: string): string | undefined {
    for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf("/"), 0))) {
      const found = this.#taken.get([folder, FOLDER, name].filter(Boolean).join("/"));
      if (found !== undefined || folder === "") {
        return found;
      }
    }
  }
}

function sorted(packages: readonly InstalledPackage[]): InstalledPackage[] {
  return packages.toSorted((a, b) => compare(a.name, b.name) || compare(a.root, b.root));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
