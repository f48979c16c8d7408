/** Media types of bodies and files: what they are called, and which of them a range takes. */

/** The media type of a content type, without parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** True for JSON, and for formats that are JSON. */
export function isJsonType(mediaType: string): boolean {
  return (
    mediaType === "application/json" || mediaType.endsWith("+json") || mediaType === "text/json"
  );
}

/** True for what browsers send of a form: parts, or names and values in one line. */
export function isFormType(mediaType: string): boolean {
  return mediaType === "multipart/form-data" || mediaType === "application/x-www-form-urlencoded";
}

/** What bytes of an unknown type are called. */
export const UNKNOWN_TYPE = "application/octet-stream";

/** What programs send for a type that they do not know. */
const UNKNOWN = new Set([
  ...["", "*/*", UNKNOWN_TYPE, "binary/octet-stream", "application/x-octet-stream"],
  ...["application/octetstream", "application/x-binary", "application/binary"],
  ...["application/unknown", "application/x-unknown", "application/force-download"],
  ...["application/x-force-download", "application/download", "application/x-download"],
]);

/** True for a type that says nothing, or is a range. */
export function isUnknownType(mediaType: string): boolean {
  return UNKNOWN.has(mediaType) || mediaType.endsWith("/*");
}

/**
 * Names that programs give to registered types (https://www.iana.org/assignments/media-types):
 * those of before their registration, of one vendor, or made of the extension.
 */
const REGISTERED: { readonly [alias: string]: string } = {
  "image/jpg": "image/jpeg",
  "image/pjpeg": "image/jpeg",
  "image/x-png": "image/png",
  "image/x-webp": "image/webp",
  "image/x-gif": "image/gif",
  "image/x-bmp": "image/bmp",
  "image/x-ms-bmp": "image/bmp",
  "image/tif": "image/tiff",
  "image/x-tiff": "image/tiff",
  "image/svg": "image/svg+xml",
  "image/x-icon": "image/vnd.microsoft.icon",
  "image/ico": "image/vnd.microsoft.icon",
  "audio/x-wav": "audio/wav",
  "audio/wave": "audio/wav",
  "audio/vnd.wave": "audio/wav",
  "audio/x-pn-wav": "audio/wav",
  "audio/mp3": "audio/mpeg",
  "audio/x-mp3": "audio/mpeg",
  "audio/mpeg3": "audio/mpeg",
  "audio/x-mpeg": "audio/mpeg",
  "audio/x-mpeg-3": "audio/mpeg",
  "audio/m4a": "audio/mp4",
  "audio/x-m4a": "audio/mp4",
  "audio/x-flac": "audio/flac",
  "audio/x-aiff": "audio/aiff",
  "audio/x-ogg": "audio/ogg",
  "audio/x-aac": "audio/aac",
  "video/x-m4v": "video/mp4",
  "video/avi": "video/x-msvideo",
  "video/msvideo": "video/x-msvideo",
  "application/x-pdf": "application/pdf",
  "application/x-zip": "application/zip",
  "application/x-zip-compressed": "application/zip",
  "application/x-gzip": "application/gzip",
  "application/x-json": "application/json",
  "text/json": "application/json",
  "text/x-json": "application/json",
  "text/xml": "application/xml",
  "application/x-xml": "application/xml",
  "text/yaml": "application/yaml",
  "text/x-yaml": "application/yaml",
  "application/x-yaml": "application/yaml",
  "application/csv": "text/csv",
  "text/x-csv": "text/csv",
  "application/x-csv": "text/csv",
  "text/comma-separated-values": "text/csv",
  "text/x-markdown": "text/markdown",
  "application/x-javascript": "text/javascript",
  "application/javascript": "text/javascript",
};

function registered(mediaType: string): string {
  return Object.hasOwn(REGISTERED, mediaType) ? (REGISTERED[mediaType] ?? mediaType) : mediaType;
}

/**
 * The type of a file that came with this content type for an argument of these types, such as
 * `image/png` or `image/*`: as the argument names it, else as it is registered, with the
 * parameters that were sent. Undefined: the argument does not take it. Bytes of unknown type pass.
 */
export function typeTaken(range: string | undefined, contentType: string): string | undefined {
  const sent = mediaTypeOf(contentType);
  if (isUnknownType(sent)) {
    return UNKNOWN_TYPE;
  }
  const type = registered(sent);
  const [, ...parameters] = contentType.split(";");
  const named = type === sent ? contentType : [type, ...parameters].join(";");
  const wanted = (range ?? "*/*").toLowerCase().split(",");
  for (const each of wanted.map((one) => one.trim())) {
    if (each === "*/*" || (each.endsWith("*") && type.startsWith(each.slice(0, -1)))) {
      return named;
    }
    if (registered(each) === type) {
      return each === sent ? contentType : each;
    }
  }
  return undefined;
}
