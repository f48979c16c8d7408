/**
 * The id of a request, by which callers, logs and traces speak of it: the
 * caller's own `X-Request-Id` where that can stand in a log, else a new one.
 * Every answer carries it.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import { createDigitSource } from "../../collections/random-digits.ts";

const HEADER = "x-request-id";

/** What ids of others look like: UUIDs, hex, base64url, with a path or a prefix. */
const WELL_FORMED = /^[\w.:/+=@~-]{1,128}$/;

/** Of 128 random bits: no two requests have the same, and none tells of those before it. */
const newId = createDigitSource(32);

/** For Fastify's `genReqId`. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers[HEADER];
  if (typeof given === "string" && WELL_FORMED.test(given)) {
    return given;
  }
  return newId();
}

/** Every answer says which request it is to, whichever face gives it. */
export function answerRequestIds(app: FastifyInstance): void {
  app.addHook("onRequest", (req, reply, done) => {
    reply.header(HEADER, req.id);
    done();
  });
}
