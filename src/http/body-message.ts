import type { HttpBody } from "../../gen/google/api/httpbody_pb.js";

/** Bytes as a message. */
export function bodyMessage(contentType: string, data: Uint8Array): HttpBody {
  return { $typeName: "google.api.HttpBody", contentType, data, extensions: [] };
}
