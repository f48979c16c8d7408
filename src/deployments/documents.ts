import type { ServiceManifest } from "../sdk/manifest.ts";
import { openApiDocument } from "./openapi.ts";
import { schemaDocument } from "./schema.ts";

/** Writes the JSON text of a document about a service. */
type Writer = (manifest: ServiceManifest) => string;

/** The documents that describe a deployment, by path. Each is written once per revision. */
export function documents(options: { readonly authorization: boolean; readonly version: string }): {
  readonly [path: string]: Writer;
} {
  return {
    "/schema.json": once(schemaDocument),
    "/docs.json": once((manifest) => openApiDocument(manifest, options)),
  };
}

function once(describe: (manifest: ServiceManifest) => unknown): Writer {
  const written = new WeakMap<ServiceManifest, string>();
  return (manifest) => {
    let text = written.get(manifest);
    if (text === undefined) {
      text = JSON.stringify(describe(manifest));
      written.set(manifest, text);
    }
    return text;
  };
}
