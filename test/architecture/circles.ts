import { imports } from "./imports.ts";

/**
 * Entries of one folder that import each other in a circle, each as
 * `folder: entry -> entry -> entry`. A folder stands for all files below it, so
 * this finds circles of folders and of files, at every depth.
 */
export function circles(): string[] {
  const folders = new Map<string, Map<string, Set<string>>>();
  for (const { from, to } of imports.filter((it) => it.to.startsWith("src/"))) {
    const [here, there] = [from.split("/"), to.split("/")];
    const depth = here.findIndex((part, index) => part !== there[index]);
    const [entry, imported] = [here[depth] ?? "", there[depth] ?? ""];
    const folder = here.slice(0, depth).join("/");
    const graph = folders.get(folder) ?? new Map<string, Set<string>>();
    folders.set(folder, graph);
    graph.set(entry, (graph.get(entry) ?? new Set()).add(imported));
  }
  return [...folders].flatMap(([folder, graph]) =>
    circlesOf(graph).map((circle) => `${folder}: ${circle.join(" -> ")}`),
  );
}

/** The circles that a depth-first search meets. */
function circlesOf(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const visit = (entry: string, path: readonly string[]): void => {
    if (path.includes(entry)) {
      found.push([...path.slice(path.indexOf(entry)), entry]);
    } else if (!done.has(entry)) {
      for (const next of graph.get(entry) ?? []) {
        visit(next, [...path, entry]);
      }
      done.add(entry);
    }
  };
  for (const entry of graph.keys()) {
    visit(entry, []);
  }
  return found;
}
