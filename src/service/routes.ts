/**
 * The paths of endpoints: `/predict`, or the one that the service gave, such as `/v1/predict`, and
 * then that alone. A task has `/v1/predict/submit` and the others below it.
 */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { isMountName } from "./mounts.ts";

/** The path at which an endpoint is called; that of a mounted server is its name. */
export function routeOf({ name, route }: Pick<EndpointManifest, "name" | "route">): string {
  return route ?? (isMountName(name) ? name : `/${name}`);
}

/** A path that is `below` that of an endpoint, as a URL has it. */
export function pathBelow(endpoint: Pick<EndpointManifest, "name" | "route">, below = ""): string {
  const path = encodeURI(routeOf(endpoint)).replace(/[?#]/g, encodeURIComponent);
  return below === "" ? path : `${path === "/" ? "" : path}/${below}`;
}

/** The endpoints of a revision by their paths. */
type Routes = ReadonlyMap<string, string>;

/** A cache per revision, because every request asks. */
const known = new WeakMap<ServiceManifest, Routes>();

/**
 * The name of the endpoint at a path, which begins with a slash and is decoded; undefined where
 * no endpoint has it. Where two endpoints have one path, the first has it.
 */
export function endpointAt(manifest: ServiceManifest, path: string): string | undefined {
  let routes = known.get(manifest);
  if (routes === undefined) {
    const { endpoints } = manifest;
    routes = new Map(endpoints.toReversed().map((each) => [routeOf(each), each.name] as const));
    known.set(manifest, routes);
  }
  return routes.get(path);
}
