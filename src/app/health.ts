/** The health of a node of the platform, from its heartbeats and from what the database answers. */

import type { Problem } from "../errors.ts";
import { Readiness } from "../server/readiness.ts";
import { isDiskFull } from "../storage/unavailable.ts";

/** Whether the node is ready: a node that stops is not, whatever its last heartbeats say. */
export class Health {
  readonly readiness = new Readiness();
  #stopped = false;

  constructor(resources: AsyncDisposableStack) {
    resources.defer(() => this.stop());
  }

  databaseAnswers(answers: boolean): void {
    // What was refused has told why already.
    if (!this.#stopped && (answers || this.readiness.status() === "SERVING")) {
      this.readiness.set(answers, refusalReason(undefined));
    }
  }

  /** An operation failed with STORAGE_UNAVAILABLE: the node is unready until the next heartbeat gets through. */
  databaseRefused({ cause }: Problem): void {
    if (!this.#stopped) {
      this.readiness.set(false, refusalReason(cause));
    }
  }

  stop(): void {
    this.#stopped = true;
    this.readiness.set(false, "the server is shutting down");
  }
}

/** Why a node is not ready whose database has refused an operation for this cause. */
export function refusalReason(cause: unknown): string {
  return isDiskFull(cause)
    ? "the disk of the database is full: make room on it"
    : "the database does not answer";
}
