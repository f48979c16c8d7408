import pg from "pg";
import { Problem } from "../../errors.ts";
import { unavailable } from "../unavailable.ts";

/**
 * SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html)
 * that tell of the database's surroundings, not of the statement. By class:
 * connection, transaction rollback (deadlocks), resources and full disks,
 * operator intervention (shutdown, terminated, cancelled by a timeout), system
 * errors, and authorization, which somebody changed while we were running.
 */
const TEMPORARY_CLASSES = new Set(["08", "28", "40", "53", "57", "58"]);

/** Read-only (a standby took over), no lock in time, the database is gone, too many idle seconds. */
const TEMPORARY = new Set(["25006", "25P03", "25P04", "55P03", "3D000"]);

/** What a query was rejected with, as the port promises it. */
export function toStorageError(err: unknown): Error {
  if (err instanceof Problem) {
    return err;
  }
  if (err instanceof pg.DatabaseError) {
    const code = err.code ?? "";
    const temporary = TEMPORARY_CLASSES.has(code.slice(0, 2)) || TEMPORARY.has(code);
    return temporary ? unavailable(err) : err;
  }
  // Everything else that the driver reports is about its connection.
  const defect = err instanceof TypeError || err instanceof RangeError;
  return defect ? err : unavailable(err);
}

export function isUnavailable(err: unknown): boolean {
  return err instanceof Problem && err.reason === "STORAGE_UNAVAILABLE";
}

/** True when nobody answered in time: those who wait behind this call would wait as long. */
export function isSilence(err: unknown): boolean {
  return err instanceof Problem && err.cause instanceof Error && /timeout/i.test(err.cause.message);
}
