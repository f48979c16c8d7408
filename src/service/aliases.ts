/**
 * Paths that services give to their endpoints, besides `/{endpoint}`: `/v1/predict` and, for a
 * task, `/v1/predict/submit` and the others.
 */
import type { ServiceManifest } from "../protocol/manifest.ts";

/** The endpoints of a revision by their paths. */
type Aliases = ReadonlyMap<string, string>;

const NONE: Aliases = new Map();

/** A cache per revision, because every request asks. */
const known = new WeakMap<ServiceManifest, Aliases>();

/** The name of the endpoint at a path, which begins with a slash; undefined where there is none. */
export function endpointAt(manifest: ServiceManifest, path: string): string | undefined {
  let aliases = known.get(manifest);
  if (aliases === undefined) {
    aliases = aliasesOf(manifest);
    known.set(manifest, aliases);
  }
  return aliases.get(path);
}

/**
 * The path that its service gave an endpoint goes before the name of another, as it is what the
 * author wrote; of two endpoints with one path the first has it. An endpoint with a path of its
 * own is also found by its name where nothing else is there.
 */
function aliasesOf({ endpoints }: ServiceManifest): Aliases {
  if (endpoints.every(({ route }) => route === undefined)) {
    return NONE;
  }
  return new Map(
    endpoints.toReversed().map(({ name, route = `/${name}` }) => [route, name] as const),
  );
}
