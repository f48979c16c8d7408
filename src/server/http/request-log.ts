/**
 * The server's log, kept apart from Fastify. Given a log, Fastify would create
 * a child log, two listeners and two readings of the clock for each request,
 * most of which write no line.
 */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** Absent if Fastify has a log of its own. */
    ownLog?: FastifyBaseLogger;
  }
}

/** Makes a server write to this log. */
export function writeTo(app: FastifyInstance, log: FastifyBaseLogger): void {
  app.decorate("ownLog", log);
}

/** The log of a server. */
export function logOf(app: FastifyInstance): FastifyBaseLogger {
  return app.ownLog ?? app.log;
}

/** A log whose lines carry the request's id; created only when there is a line to write. */
export function requestLog({ server, id, log }: FastifyRequest): FastifyBaseLogger {
  return server.ownLog?.child({ reqId: id }) ?? log;
}
