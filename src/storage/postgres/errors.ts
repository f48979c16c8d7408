/** Classifies errors of Postgres and its driver: temporary (STORAGE_UNAVAILABLE) or defects. */
import pg from "pg";
import { Problem } from "../../errors.ts";
import { unavailable } from "../unavailable.ts";

/**
 * SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html)
 * for failures of the environment, not of the statement. By class: connection,
 * transaction rollback (deadlocks), resources and full disks, operator
 * intervention (shutdown, terminated, cancelled by a timeout), system errors,
 * and authorization that was changed while we were running.
 */
const TEMPORARY_CLASSES = new Set(["08", "28", "40", "53", "57", "58"]);

/** Read-only (a standby took over), lock timeout, database dropped, idle timeouts. */
const TEMPORARY = new Set(["25006", "25P03", "25P04", "55P03", "3D000"]);

/** Converts a query's error to the one that the storage port promises. */
export function toStorageError(err: unknown): Error {
  if (err instanceof Problem) {
    return err;
  }
  if (err instanceof pg.DatabaseError) {
    const code = err.code ?? "";
    const temporary = TEMPORARY_CLASSES.has(code.slice(0, 2)) || TEMPORARY.has(code);
    return temporary ? unavailable(err) : err;
  }
  // All other errors of the driver are about its connection.
  const defect = err instanceof TypeError || err instanceof RangeError;
  return defect ? err : unavailable(err);
}

/** Whether a row was not stored because its key is there. */
export function isTaken(err: unknown): boolean {
  return err instanceof pg.DatabaseError && err.code === "23505";
}

export function isUnavailable(err: unknown): boolean {
  return err instanceof Problem && err.reason === "STORAGE_UNAVAILABLE";
}

/**
 * Whether the server did not respond in time: calls that wait behind this one
 * would wait as long.
 */
export function isSilence(err: unknown): boolean {
  return err instanceof Problem && err.cause instanceof Error && /timeout/i.test(err.cause.message);
}
