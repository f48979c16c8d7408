import { type Problem, problem } from "../errors.ts";

/** Makes the STORAGE_UNAVAILABLE problem that callers see; `cause` is for the log. */
export function unavailable(cause: unknown): Problem {
  const message = isDiskFull(cause)
    ? "the disk of the database is full, so the call was not carried out: try again when the operator has made room"
    : "the database does not answer; the call was not carried out or its outcome is unknown, try again";
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/** Why a cell did not answer: the database of a part of the tasks, beside which the others go on. */
export class CellAway extends Error {}

/** Makes the STORAGE_UNAVAILABLE problem of a cell that did not answer. */
export function cellUnavailable(name: string, cause: unknown): Problem {
  const message = `cell ${name}, a database with a part of the tasks, does not answer; the call was not carried out or its outcome is unknown, try again`;
  const away = new CellAway(`cell ${name} did not answer`, { cause });
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause: away });
}

/** Thrown by a storage's start when the database does not answer, and may do so later. */
export class DatabaseAway extends Error {}

/** An error of a database that has no room on its disk, and no code that says so. */
export class DiskFull extends Error {}

/** Of the system: no space, quota used up; of Postgres: disk_full. */
const FULL = new Set(["ENOSPC", "EDQUOT", "53100"]);

/** Whether an error of a database or a file says that its disk has no room. */
export function isDiskFull(cause: unknown): boolean {
  return (
    cause instanceof DiskFull || FULL.has(String((cause as { readonly code?: unknown })?.code))
  );
}
