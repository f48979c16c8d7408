import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";

export const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Bytes as a message. */
export function bodyMessage(contentType: string, data: Uint8Array): HttpBody {
  return { $typeName: "google.api.HttpBody", contentType, data, extensions: [] };
}
