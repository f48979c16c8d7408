import type { ServiceManifest } from "../protocol/manifest.ts";
import { openApiDocument } from "./openapi/document.ts";
import { bentomlDocument, schemaDocument } from "./schema.ts";

/** Writes a document about a service as JSON text. `authorization`: callers need a token. */
type Writer = (manifest: ServiceManifest, authorization: boolean) => string;

/** The path of an OpenAPI document. */
export const OPENAPI_PATH = "/docs.json";

/** The path of the description that clients read before their first call. */
export const SCHEMA_PATH = "/schema.json";

/** Writes that description for BentoML's own clients. */
export const writeForBentoml: (manifest: ServiceManifest) => string = once(
  (manifest) => bentomlDocument(manifest) ?? schemaDocument(manifest),
);

/** The writers of the documents about a deployment, by path. Each runs once per revision. */
export function documents({ version }: { readonly version: string }): {
  readonly [path: string]: Writer;
} {
  const open = once((manifest) => openApiDocument(manifest, { version, authorization: false }));
  const closed = once((manifest) => openApiDocument(manifest, { version, authorization: true }));
  return {
    [SCHEMA_PATH]: once(schemaDocument),
    [OPENAPI_PATH]: (manifest, authorization) => (authorization ? closed : open)(manifest),
  };
}

function once(
  describe: (manifest: ServiceManifest) => unknown,
): (manifest: ServiceManifest) => string {
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
