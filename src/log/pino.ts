/** The adapter of the log to pino. */
import { type Logger, pino } from "pino";
import pretty from "pino-pretty";
import { Problem } from "../errors.ts";

/** The log of the whole process, of which others are children. */
export type ProcessLog = Logger;

/**
 * Creates the log of a node, on stderr: lines for people on a terminal, JSON
 * otherwise. Writes are synchronous, so no line is lost when the process ends.
 */
export function createLog(level: string): ProcessLog {
  const stream = process.stderr.isTTY
    ? pretty({
        destination: 2,
        sync: true,
        // The message of a logged call already says these.
        ignore: "pid,hostname,reqId,call",
        translateTime: "HH:MM:ss",
      })
    : pino.destination({ dest: 2, sync: true });
  return pino(
    { level, base: null, serializers: { err: (err: unknown) => serializeError(err) } },
    stream,
  );
}

/** Causes of causes in a logged error; a chain may be a ring. */
const MAX_LOGGED_CAUSES = 5;

/**
 * Serializes only the standard properties of an error. What drivers and
 * libraries add may be what callers sent: Postgres, for one, adds whole rows.
 */
function serializeError(err: unknown, depth = 0): object {
  if (!(err instanceof Error)) {
    // The failure of a function, as the queue recorded it.
    const { message = String(err), stack } = (err ?? {}) as { message?: string; stack?: string };
    return { message, ...(stack !== undefined && { stack }) };
  }
  const { cause } = err;
  const further =
    cause === undefined || depth === MAX_LOGGED_CAUSES
      ? {}
      : { cause: serializeError(cause, depth + 1) };
  if (err instanceof Problem) {
    return { type: "Problem", reason: err.reason, message: err.rawMessage, ...further };
  }
  const { name, message, stack, code } = err as NodeJS.ErrnoException;
  return { type: name, message, stack, ...(code !== undefined && { code }), ...further };
}
