/** Which paths are those of some services, on the faces that all services have. */
import type { DescService } from "@bufbuild/protobuf";
import { type Binding, compileBindings } from "./binding.ts";
import { RouteTable } from "./routes.ts";

/**
 * Whether a path is that of a method of these services, over RPC or REST,
 * whatever the HTTP method. A path that cannot be read is as good as theirs.
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
