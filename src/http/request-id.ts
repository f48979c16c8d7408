/**
 * The id of a request, by which callers, logs and traces speak of it: the
 * caller's own `X-Request-Id` where that can stand in a log, else a new one.
 * Every answer carries it.
 */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";

const HEADER = "x-request-id";

/** What ids of others look like: UUIDs, hex, base64url, with a path or a prefix. */
const WELL_FORMED = /^[\w.:/+=@~-]{1,128}$/;

/** Drawn once: of 122 random bits, so that no two processes count under the same. */
const PREFIX = `req-${randomUUID()}`;
let count = 0;

/** For Fastify's `genReqId`. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers[HEADER];
  if (typeof given === "string" && WELL_FORMED.test(given)) {
    return given;
  }
  count += 1;
  return `${PREFIX}-${count.toString(36)}`;
}

/** Every answer says which request it is to, whichever face gives it. */
export function answerRequestIds(app: FastifyInstance): void {
  app.addHook("onRequest", (req, reply, done) => {
    reply.header(HEADER, req.id);
    done();
  });
}
