/**
 * The server's log. Fastify is given none: for one it makes a log, two
 * listeners and two readings of the clock for each request, of which most
 * write no line.
 */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** Absent where Fastify has a log of its own. */
    ownLog?: FastifyBaseLogger;
  }
}

/** Has a server write to this log. */
export function writeTo(app: FastifyInstance, log: FastifyBaseLogger): void {
  app.decorate("ownLog", log);
}

export function logOf(app: FastifyInstance): FastifyBaseLogger {
  return app.ownLog ?? app.log;
}

/** The log of one request, whose lines bear its id; made for a line. */
export function requestLog({ server, id, log }: FastifyRequest): FastifyBaseLogger {
  return server.ownLog?.child({ reqId: id }) ?? log;
}
