/** One line in the log for each call, when its answer is out or its caller gone. */
import type { FastifyInstance } from "fastify";
import type { CallNote } from "./note.ts";
import { logOf } from "./request-log.ts";

/** Paths longer than this are cut in the log. */
const MAX_PATH_LENGTH = 200;

/**
 * Logs calls at this level: method, path, status, milliseconds, the request's
 * id, and those of the task and the trace that it is about. Never a query, a
 * header or a body, which may hold secrets.
 */
export function logAccess(app: FastifyInstance, level: "debug" | "info"): void {
  app.decorateRequest("note");
  app.addHook("onRequest", (req, reply, done) => {
    const note: CallNote = {};
    req.note = note;
    const startMs = performance.now();
    const { method, id, url } = req;
    // However it is answered, or not: by Fastify or, for RPCs, past it.
    reply.raw.once("close", () => {
      const { statusCode: status, writableEnded } = reply.raw;
      const path = pathOf(url);
      const ms = Math.round((performance.now() - startMs) * 10) / 10;
      const gone = writableEnded ? "" : " (its caller left early)";
      logOf(app)[level](
        { call: { method, path, status, ms }, reqId: id, ...note },
        `${method} ${path} ${status} ${ms} ms ${id}${gone}`,
      );
    });
    done();
  });
}

/** Without the query, and without the authority that a URL to a proxy has. */
function pathOf(url: string): string {
  const [path = ""] = url.replace(/^[a-z]+:\/\/[^/]*/i, "").split("?", 1);
  return path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path;
}
