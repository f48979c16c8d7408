/**
 * What every answer says in its headers, over every protocol, unless its handler says otherwise:
 * the request's id, that nobody keeps it, and that browsers do not guess its type.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import { createDigitSource } from "../../collections/bytes.ts";

export function setDefaultHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", (req, reply, done) => {
    reply
      .header(REQUEST_ID_HEADER, req.id)
      .header("cache-control", "no-store")
      .header("x-content-type-options", "nosniff");
    done();
  });
}

// Request ids, which correlate callers, logs and traces. A request has the caller's own
// `X-Request-Id` if that is safe in a log, otherwise a new id, and every answer carries it.

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
