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

/** Where two endpoints have one path, the first has it; none has that of another by name. */
function aliasesOf({ endpoints }: ServiceManifest): Aliases {
  const routed = endpoints.filter(({ route }) => route !== undefined);
  if (routed.length === 0) {
    return NONE;
  }
  const names = new Set(endpoints.map(({ name }) => `/${name}`));
  return new Map(
    routed
      .toReversed()
      .flatMap(({ name, route = "" }) => (names.has(route) ? [] : [[route, name] as const])),
  );
}
