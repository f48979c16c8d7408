/** The media type of stored pieces, which outlive the endpoint that gave them. */
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { PieceForm } from "../../storage/pieces.ts";

/** @param endpoint of the task, undefined if it no longer exists */
export function pieceTypeOf(form: PieceForm, endpoint: EndpointManifest | undefined): string {
  if (form !== "bytes") {
    return form === "json" ? "application/json" : "text/plain; charset=utf-8";
  }
  const { contentType = "" } = endpoint?.outputFile ?? {};
  // A range of types says which are allowed, and not which one it is.
  return contentType === "" || contentType.includes("*") ? "application/octet-stream" : contentType;
}
