/** The access log: one line for each call, written when its answer is sent or its caller has gone. */
import type { FastifyInstance } from "fastify";
import type { CallNote } from "./call-note.ts";
import { logOf } from "./request-log.ts";

/** Path in the access log, cut beyond. */
const MAX_LOGGED_PATH_CHARACTERS = 200;

/**
 * Logs calls at this level: method, path, status, milliseconds, and the ids of
 * the request, its task and its trace. Never a query, a header or a body,
 * which may hold secrets.
 */
export function logAccess(app: FastifyInstance, level: "debug" | "info"): void {
  app.decorateRequest("note");
  app.addHook("onRequest", (req, reply, done) => {
    const note: CallNote = {};
    req.note = note;
    const startMs = performance.now();
    const { method, id, url } = req;
    // Covers every call: those that Fastify answers, RPCs, which bypass it, and unanswered ones.
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

/** The path without the query, and without the authority of a URL sent to a proxy. */
function pathOf(url: string): string {
  const [path = ""] = url.replace(/^[a-z]+:\/\/[^/]*/i, "").split("?", 1);
  return path.length > MAX_LOGGED_PATH_CHARACTERS
    ? `${path.slice(0, MAX_LOGGED_PATH_CHARACTERS)}…`
    : path;
}
