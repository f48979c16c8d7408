/** The media types of results: of texts, and of the pieces of a stream. Stored ones outlive their endpoint. */
import type { EndpointManifest, StreamManifest } from "../protocol/manifest.ts";

export const PLAIN_TEXT = "text/plain; charset=utf-8";

/** A media type without parameters. A manifest is hostile. */
const MEDIA_TYPE = /^[a-z0-9][\w.+-]*\/[a-z0-9][\w.+-]*$/i;

/** The media type of a text, which the schema of a result may say (`contentMediaType`). */
export function textTypeOf(endpoint: Pick<EndpointManifest, "output"> | undefined): string {
  const said = endpoint?.output.contentMediaType;
  // A text that is JSON would be taken for the value that it stands for.
  const isSaid = typeof said === "string" && MEDIA_TYPE.test(said) && said !== "application/json";
  return isSaid ? `${said}; charset=utf-8` : PLAIN_TEXT;
}

/**
 * Of bytes, the type of the file that they make.
 *
 * @param endpoint that gives them, undefined if it no longer exists
 */
export function pieceTypeOf(
  form: StreamManifest["pieces"],
  endpoint: EndpointManifest | undefined,
): string {
  if (form !== "bytes") {
    return form === "json" ? "application/json" : textTypeOf(endpoint);
  }
  const { contentType = "" } = endpoint?.outputFile ?? {};
  // A range of types says which are allowed, and not which one it is.
  return contentType === "" || contentType.includes("*") ? "application/octet-stream" : contentType;
}
