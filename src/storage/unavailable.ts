import { type Problem, problem } from "../errors.ts";

/** Makes the STORAGE_UNAVAILABLE problem that callers see; `cause` is for the log. */
export function unavailable(cause: unknown): Problem {
  const message =
    "the database does not answer; the call was not carried out or its outcome is unknown, try again";
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/** Thrown by a storage's start when the database does not answer, and may do so later. */
export class DatabaseAway extends Error {}
