/** The mounted servers of a service: which one a path is for, and how their requests take slots. */
import type { EndpointManifest, MountManifest, ServiceManifest } from "../protocol/manifest.ts";

/** The server that answers at a decoded path: of several, the one whose own path is longest. */
export function mountAt({ mounts }: ServiceManifest, path: string): MountManifest | undefined {
  let best: MountManifest | undefined;
  for (const mount of mounts ?? []) {
    if (isBelow(path, mount.path) && mount.path.length >= (best?.path.length ?? 0)) {
      best = mount;
    }
  }
  return best;
}

/** Whether a path is that of a mounted server, or below it. */
export function isBelow(path: string, mounted: string): boolean {
  return mounted === "/" || path === mounted || path.startsWith(`${mounted}/`);
}

const made = new WeakMap<MountManifest, EndpointManifest>();

/**
 * An endpoint that stands for a mounted server where slots are taken and counted; the same each
 * time. Its name is the path, which no endpoint of a service can have.
 */
export function mountEndpoint(mount: MountManifest): EndpointManifest {
  const known = made.get(mount);
  if (known !== undefined) {
    return known;
  }
  const endpoint: EndpointManifest = {
    name: mount.path,
    kind: "api",
    input: {},
    files: {},
    output: {},
    timeoutMs: mount.timeoutMs,
    concurrency: mount.concurrency,
    retentionMs: 0,
    retries: { max: 0, backoffMs: 0 },
    queueLimit: 0,
    priority: 0,
  };
  made.set(mount, endpoint);
  return endpoint;
}

/** Whether the name of what takes slots is that of a mounted server. */
export function isMountName(name: string): boolean {
  return name.startsWith("/");
}

/** All that takes slots in workers: the endpoints, and what stands for mounted servers. */
export function takersOf({
  endpoints,
  mounts = [],
}: Pick<ServiceManifest, "endpoints" | "mounts">): readonly EndpointManifest[] {
  return mounts.length === 0 ? endpoints : [...endpoints, ...mounts.map(mountEndpoint)];
}
