/**
 * Where packages that stay files lie in an artifact: under `node_modules` at
 * its root, as npm would have installed them, wherever and however they are
 * installed here (hoisted, nested, or linked from a store). A package goes to
 * the root unless another of its name is there; then into the package that
 * needs it. All that one package needs is placed before what these need in
 * turn, so no place is taken later from between a package and what it found.
 */
import type { InstalledPackage } from "./packages.ts";
import type { Dependency } from "./trace.ts";

const FOLDER = "node_modules";
/** Deeper than any real tree. */
const MAX_DEPTH = 64;

/** For the folder of each package, its places in the artifact; the first can be reached from the root. */
export function placePackages(
  packages: readonly InstalledPackage[],
  dependencies: readonly Dependency[],
): Map<string, string[]> {
  const tree = new Tree(dependencies);
  tree.addAll("", tree.needs(undefined));
  // What nobody imports by name, such as a library that native code is linked with.
  tree.addAll("", sorted(packages.filter(({ root }) => !tree.places.has(root))));
  return tree.places;
}

class Tree {
  readonly places = new Map<string, string[]>();
  readonly #needs = new Map<string | undefined, Map<string, InstalledPackage>>();
  /** The folder of the package at a place. */
  readonly #taken = new Map<string, string>();
  #besides = 0;

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

  /** What a package, or the service, needs. */
  needs(root: string | undefined): InstalledPackage[] {
    return sorted([...(this.#needs.get(root)?.values() ?? [])]);
  }

  /** Places packages for who lies at `from`, and then what they need. */
  addAll(from: string, packages: readonly InstalledPackage[]): void {
    const queue = [{ from, packages, depth: 0 }];
    for (const { from, packages, depth } of queue) {
      for (const { name, root } of packages) {
        const place = this.#place(from, name, root);
        if (place !== undefined && depth < MAX_DEPTH) {
          queue.push({ from: place, packages: this.needs(root), depth: depth + 1 });
        }
      }
    }
  }

  /** Its new place; undefined when it is found from there already. */
  #place(from: string, name: string, root: string): string | undefined {
    const found = this.#lookUp(from, name);
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
    // A second one of the service's own, which imports it from its very place.
    this.#besides += 1;
    return `${FOLDER}/.besides/${this.#besides}/${FOLDER}/${name}`;
  }

  /** What Node finds from a folder: in its own `node_modules`, and in those above. */
  #lookUp(from: string, name: string): string | undefined {
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
