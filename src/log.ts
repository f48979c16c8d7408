import { type Logger, pino, stdSerializers } from "pino";
import pretty from "pino-pretty";
import { Problem } from "./errors.ts";

/**
 * The log of a node, on stderr: lines for people on a terminal, JSON
 * otherwise. Synchronous, so that nothing of it is lost when the process ends.
 */
export function createLog(level: string): Logger {
  const stream = process.stderr.isTTY
    ? pretty({
        destination: 2,
        sync: true,
        // What the message of a logged call says already.
        ignore: "pid,hostname,reqId,call",
        translateTime: "HH:MM:ss",
      })
    : pino.destination({ dest: 2, sync: true });
  return pino({ level, base: null, serializers: { err: serializeError } }, stream);
}

/** An error of the catalogue without the descriptors of its details; its cause is what matters. */
function serializeError(err: unknown): object {
  if (err instanceof Problem) {
    const cause = err.cause instanceof Error ? stdSerializers.err(err.cause) : err.cause;
    return { type: "Problem", reason: err.reason, message: err.rawMessage, cause };
  }
  return err instanceof Error ? stdSerializers.err(err) : { message: String(err) };
}
