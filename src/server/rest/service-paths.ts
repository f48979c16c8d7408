/** The paths of services, over the protocols that all services have. */
import type { DescService } from "@bufbuild/protobuf";
import { type Binding, compileBindings } from "./binding.ts";
import { RouteTable } from "./path-matching.ts";

/**
 * Returns a test for paths of these services, over RPC or REST and for any
 * HTTP method. A path that cannot be decoded counts as one of theirs.
 */
export function pathsOf(services: readonly DescService[]): (path: string) => boolean {
  const names = new Set(services.map(({ typeName }) => typeName));
  const routes = new RouteTable<Binding>();
  for (const route of compileBindings(services)) {
    routes.add(route);
  }
  return (path) => {
    try {
      const [, first = ""] = path.split("/", 2);
      const found = routes.find("", path);
      return names.has(decodeURIComponent(first)) || "route" in found || found.allow.length > 0;
    } catch {
      return true;
    }
  };
}
