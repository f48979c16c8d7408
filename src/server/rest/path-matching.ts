/**
 * The router of REST: a prefix tree of path segments that finds the binding
 * for a method and a path. If several templates match, the most literal one
 * from left to right wins: a literal before `*`, `*` before `**`.
 *
 * A verb counts only if a template registers it: `/tasks/a:cancel` is the verb
 * `cancel` on `a`, `/tasks/a:b` is the task `a:b`. If a verb matches the path,
 * templates without it do not, whatever the method.
 *
 * Segments are decoded once, after splitting, so `%2F` never splits a segment.
 */
import type { Template, Variable } from "./path-template.ts";

/** One binding of an RPC to a method and a path. */
export interface RestRoute<T> {
  /** HTTP method; `*` for any. */
  readonly method: string;
  readonly template: Template;
  /** The template as written and its RPC, for messages. */
  readonly text: string;
  readonly target: T;
}

/** The outcome of a search. */
export type Found<T> =
  | { readonly route: RestRoute<T>; readonly values: readonly PathValue[] }
  /** The path exists for these methods. Empty: it does not exist. */
  | { readonly allow: readonly string[] };

/** The value of a template's variable in a path. */
export interface PathValue {
  readonly variable: Variable;
  readonly text: string;
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  one: Node<T> | undefined;
  rest: Leaf<T> | undefined;
  readonly end: Leaf<T>;
}

/** Routes by verb (empty for no verb) and HTTP method. */
type Leaf<T> = Map<string, Map<string, RestRoute<T>>>;

/** The routes of all bindings. */
export class RouteTable<T> {
  readonly #root: Node<T> = createNode();
  readonly #verbs = new Set<string>();

  /** Adds a route. Throws an error that names both routes if another has the same method and shape. */
  add(route: RestRoute<T>): void {
    const { segments, verb = "" } = route.template;
    let node = this.#root;
    let leaf: Leaf<T> | undefined;
    for (const segment of segments) {
      if (segment.kind === "literal") {
        node = getOrAdd(node.literals, segment.text, createNode<T>);
      } else if (segment.kind === "one") {
        node.one ??= createNode();
        node = node.one;
      } else {
        node.rest ??= new Map();
        leaf = node.rest;
      }
    }
    const methods = getOrAdd(leaf ?? node.end, verb, () => new Map<string, RestRoute<T>>());
    const earlier = methods.get(route.method);
    if (earlier !== undefined) {
      throw new Error(
        `${route.method} ${route.text} and ${earlier.method} ${earlier.text} match the same paths`,
      );
    }
    methods.set(route.method, route);
    if (verb !== "") {
      this.#verbs.add(verb);
    }
  }

  /**
   * Finds the route for a raw path, without its query.
   * Errors: URIError if the path is not valid percent-encoding.
   */
  find(method: string, path: string): Found<T> {
    const raw = path.slice(1).split("/");
    const colon = path.lastIndexOf(":");
    const verb = colon > path.lastIndexOf("/") ? path.slice(colon + 1) : "";
    if (verb !== "" && this.#verbs.has(verb)) {
      const stem = path.slice(1, colon).split("/");
      const found = this.#search(method, stem, verb);
      if ("route" in found || found.allow.length > 0) {
        return found;
      }
    }
    return this.#search(method, raw, "");
  }

  #search(method: string, raw: readonly string[], verb: string): Found<T> {
    const decoded = raw.map(decodeURIComponent);
    const allow = new Set<string>();
    for (const leaf of leaves(this.#root, decoded, 0)) {
      const methods = leaf.get(verb);
      const route = methods?.get(method) ?? methods?.get("*");
      if (route !== undefined) {
        return { route, values: route.template.variables.map((one) => capture(one, raw, decoded)) };
      }
      for (const allowed of methods?.keys() ?? []) {
        allow.add(allowed);
      }
    }
    return { allow: [...allow].sort() };
  }
}

/** The leaves of all templates that match the segments, the most literal first. */
function* leaves<T>(node: Node<T>, segments: readonly string[], at: number): Generator<Leaf<T>> {
  const segment = segments[at];
  if (segment === undefined) {
    yield node.end;
  } else {
    const literal = node.literals.get(segment);
    if (literal !== undefined) {
      yield* leaves(literal, segments, at + 1);
    }
    if (node.one !== undefined && segment !== "") {
      yield* leaves(node.one, segments, at + 1);
    }
  }
  if (node.rest !== undefined) {
    yield node.rest;
  }
}

function capture(
  variable: Variable,
  raw: readonly string[],
  decoded: readonly string[],
): PathValue {
  const { start, end, multiple } = variable;
  const text = multiple
    ? raw.slice(start, end).map(decodeExceptSlash).join("/")
    : (decoded[start] ?? "");
  return { variable, text };
}

/** Decodes a segment of a variable with several segments, where an encoded slash must stay distinct from a real one. */
function decodeExceptSlash(segment: string): string {
  return segment
    .split(/(%2f)/i)
    .map((part) => (/^%2f$/i.test(part) ? part : decodeURIComponent(part)))
    .join("");
}

function createNode<T>(): Node<T> {
  return { literals: new Map(), one: undefined, rest: undefined, end: new Map() };
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
