/** The logging port, and what a line says of a function and its failures. */
import type { CallFailure, LogLevel } from "../protocol/messages.ts";

/** The part of a pino logger that the platform's mechanisms use. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A line that a function logged. */
export interface ServiceLine {
  readonly level: LogLevel;
  readonly message: string;
  /** JSON text of an object. */
  readonly fieldsJson?: string;
  /** Lines before it that were left out, because they came too fast; absent for none. */
  readonly skipped?: number;
}

/**
 * The log fields of a failure. For invalid arguments they hold the reason
 * alone, because the message may reveal the arguments.
 */
function failureFields({ reason, message, stack }: CallFailure): object {
  return reason === "ARGUMENTS_INVALID" ? { reason } : { err: { message, stack } };
}

/** Codes that HTTP answers with 500: the function is at fault, not its caller. */
const FAULTS = new Set(["internal", "unknown", "data_loss"]);

/** Logs that a function failed: an error when callers get a 500 for it, else a warning. */
export function logFailure(log: Log, failure: CallFailure, facts: object, message: string): void {
  const level = FAULTS.has(failure.code) ? "error" : "warn";
  log[level]({ ...facts, ...failureFields(failure) }, message);
}

/** Writes a function's line into the node's log; `facts` say where it came from. */
export function logLine(
  log: Log,
  { level, message, fieldsJson, skipped }: ServiceLine,
  facts: object,
): void {
  const fields: unknown = fieldsJson === undefined ? undefined : JSON.parse(fieldsJson);
  const left = skipped !== undefined && { skipped };
  log[level]({ ...facts, ...(fields !== undefined && { fields }), ...left }, message);
}
