/** The media type of the pieces of a streamed result; stored ones outlive their endpoint. */
import type { EndpointManifest, StreamManifest } from "../protocol/manifest.ts";

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
    return form === "json" ? "application/json" : "text/plain; charset=utf-8";
  }
  const { contentType = "" } = endpoint?.outputFile ?? {};
  // A range of types says which are allowed, and not which one it is.
  return contentType === "" || contentType.includes("*") ? "application/octet-stream" : contentType;
}
