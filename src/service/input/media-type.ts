/** Media types of bodies. */

/** The media type of a content type, without parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** True for JSON, and for formats that are JSON. */
export function isJsonType(mediaType: string): boolean {
  return mediaType === "application/json" || mediaType.endsWith("+json");
}
