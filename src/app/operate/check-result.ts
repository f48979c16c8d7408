/** What `tessera admin check` says of each thing that it looks at. */

/** `warning`: a node runs, but is weaker than it could be. */
export type CheckResult = "ok" | "warning" | "failed";

export interface Check {
  /** What was checked. */
  readonly name: string;
  readonly result: CheckResult;
  /** What was found, and what to do where it is not `ok`. */
  readonly detail: string;
}
