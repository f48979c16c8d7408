/**
 * Request ids, which correlate callers, logs and traces. A request has the
 * caller's own `X-Request-Id` if that is safe in a log, otherwise a new id.
 * Every answer carries it (`default-headers.ts`).
 */
import type { IncomingHttpHeaders } from "node:http";
import { createDigitSource } from "../../collections/random-digits.ts";

export const REQUEST_ID_HEADER = "x-request-id";

/** Covers the ids of other programs: UUIDs, hex, base64url, with a path or a prefix. */
const WELL_FORMED = /^[\w.:/+=@~-]{1,128}$/;

/** 128 random bits: ids are unique, and none reveals an earlier one. */
const newId = createDigitSource(32);

/** The id of a request, for Fastify's `genReqId`. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers[REQUEST_ID_HEADER];
  if (typeof given === "string" && WELL_FORMED.test(given)) {
    return given;
  }
  return newId();
}
