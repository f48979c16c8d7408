/**
 * An image layout (OCI image specification), as skopeo writes it: an index that leads to a manifest,
 * and that to the configuration and the layers, each a blob that its digest names. What a registry
 * gave is in it, so that nothing is followed that is no digest.
 */
import { constants, open } from "node:fs/promises";
import { join } from "node:path";
import { EnvironmentError } from "../environments/environment.ts";

/** The index, the manifest and the configuration of an image, each. */
const MAX_IMAGE_JSON_BYTES = 4 * 1024 ** 2;

/** What is in a layout of one image. */
export interface ImageLayout {
  /** SHA-256 of its manifest, of its configuration and of each layer, in hex, in this order. */
  readonly blobs: readonly [manifest: string, config: string, ...layers: string[]];
  readonly config: { readonly [member: string]: unknown };
}

/**
 * Reads a layout.
 * @param blobs The folder of its blobs. Default: that in the layout.
 */
export async function readLayout(
  layout: string,
  blobs = join(layout, "blobs/sha256"),
): Promise<ImageLayout> {
  const { manifests } = await readObject(join(layout, "index.json"));
  const manifest = digestIn(Array.isArray(manifests) ? manifests[0] : undefined);
  const { config, layers } = await readObject(join(blobs, manifest));
  const described = digestIn(config);
  return {
    blobs: [manifest, described, ...(Array.isArray(layers) ? layers.map(digestIn) : [])],
    config: await readObject(join(blobs, described)),
  };
}

/** The digest of a descriptor, in hex. Throws an `EnvironmentError` for what has none. */
export function digestIn(descriptor: unknown): string {
  const { digest } = (descriptor ?? {}) as { readonly digest?: unknown };
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(String(digest)) ?? [];
  if (hex === undefined) {
    throw invalid();
  }
  return hex;
}

async function readObject(path: string): Promise<{ readonly [member: string]: unknown }> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  await using file = await open(path, flags);
  const stats = await file.stat();
  const value: unknown =
    !stats.isFile() || stats.size > MAX_IMAGE_JSON_BYTES
      ? undefined
      : JSON.parse(await file.readFile("utf8"));
  if (typeof value !== "object" || value === null) {
    throw invalid();
  }
  return value as { readonly [member: string]: unknown };
}

function invalid(): EnvironmentError {
  return new EnvironmentError("LOCK_INVALID", "its image is not used: its manifest is not valid", {
    isFinal: true,
  });
}
