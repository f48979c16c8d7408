import type { ServiceManifest } from "../protocol/manifest.ts";
import { openApiDocument } from "./openapi/document.ts";
import type { MountDocument } from "./openapi/mounted.ts";
import { bentomlDocument, schemaDocument } from "./schema.ts";

/** What a document says besides the manifest. */
interface DocumentFacts {
  /** Callers need a token. */
  readonly authorization: boolean;
  /** What the mounted servers say of themselves. A text is written once for the same list. */
  readonly servers?: readonly MountDocument[] | undefined;
}

/** Writes a document about a service as JSON text. */
type Writer = (manifest: ServiceManifest, facts: DocumentFacts) => string;

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
  const openApi = (authorization: boolean) =>
    once((manifest, servers = []) =>
      openApiDocument(manifest, { version, authorization, documents: servers }),
    );
  const [open, closed] = [openApi(false), openApi(true)];
  const schema = once(schemaDocument);
  return {
    [SCHEMA_PATH]: (manifest) => schema(manifest),
    [OPENAPI_PATH]: (manifest, { authorization, servers }) =>
      (authorization ? closed : open)(manifest, servers),
  };
}

type Servers = DocumentFacts["servers"];

function once(
  describe: (manifest: ServiceManifest, servers?: Servers) => unknown,
): (manifest: ServiceManifest, servers?: Servers) => string {
  const written = new WeakMap<object, string>();
  return (manifest, servers) => {
    const key = servers ?? manifest;
    let text = written.get(key);
    if (text === undefined) {
      text = JSON.stringify(describe(manifest, servers));
      written.set(key, text);
    }
    return text;
  };
}
