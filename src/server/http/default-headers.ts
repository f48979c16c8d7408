/**
 * What every answer says in its headers, over every protocol, unless its handler says otherwise:
 * the request's id, that nobody keeps it, and that browsers do not guess its type.
 */
import type { FastifyInstance } from "fastify";
import { REQUEST_ID_HEADER } from "./request-id.ts";

export function setDefaultHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", (req, reply, done) => {
    reply
      .header(REQUEST_ID_HEADER, req.id)
      .header("cache-control", "no-store")
      .header("x-content-type-options", "nosniff");
    done();
  });
}
