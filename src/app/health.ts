/** The health of a node of the platform, from its heartbeats and from what the database answers. */

import type { Problem } from "../errors.ts";
import { Readiness } from "../server/readiness.ts";
import type { Hindrance } from "../server/rpc/health.ts";
import { isDiskFull } from "../storage/unavailable.ts";

export const SHUTTING_DOWN: Hindrance = {
  reason: "SHUTTING_DOWN",
  text: "the server is shutting down",
};

const BLOBS_MISSING: Hindrance = {
  reason: "STORAGE_UNAVAILABLE",
  text: "the store of large files has none of those that the database names, so that results cannot be fetched: put them back, or name their place with --blobs",
};

const MACHINE_DRAINED: Hindrance = {
  reason: "NO_WORKER",
  text: "the machine of this node is drained, and other nodes take its calls",
};

/** Whether the node is ready: a node that stops is not, whatever its last heartbeats say. */
export class Health {
  readonly readiness = new Readiness();
  #answers = false;
  /** Why the database refused last, until a heartbeat gets through. */
  #refused: Hindrance = refusalOf(undefined);
  #lacksBlobs = false;
  #isMachineDrained = false;
  #stopped = false;

  constructor(resources: AsyncDisposableStack) {
    resources.defer(() => this.stop());
  }

  databaseAnswers(answers: boolean): void {
    if (answers || this.#answers) {
      // What was refused has told why already.
      this.#refused = refusalOf(undefined);
    }
    this.#answers = answers;
    this.#tell();
  }

  /** An operation failed with STORAGE_UNAVAILABLE: the node is unready until the next heartbeat gets through. */
  databaseRefused({ cause }: Problem): void {
    this.#answers = false;
    this.#refused = refusalOf(cause);
    this.#tell();
  }

  /** The blob store has none of the blobs that the database names, or has some again. */
  blobsLack(lacking: boolean): void {
    this.#lacksBlobs = lacking;
    this.#tell();
  }

  /** Other nodes take the calls, because the machine of this one is drained; or no longer do. */
  machineDrained(isDrained: boolean): void {
    this.#isMachineDrained = isDrained;
    this.#tell();
  }

  stop(): void {
    this.#stopped = true;
    this.#tell();
  }

  #tell(): void {
    const hindrance = this.#hindrance();
    this.readiness.set(hindrance === undefined, hindrance);
  }

  #hindrance(): Hindrance | undefined {
    if (this.#stopped) {
      return SHUTTING_DOWN;
    }
    if (!this.#answers) {
      return this.#refused;
    }
    if (this.#lacksBlobs) {
      return BLOBS_MISSING;
    }
    return this.#isMachineDrained ? MACHINE_DRAINED : undefined;
  }
}

/** Why a node is not ready whose database has refused an operation for this cause. */
export function refusalOf(cause: unknown): Hindrance {
  const text = isDiskFull(cause)
    ? "the disk of the database is full: make room on it"
    : "the database does not answer";
  return { reason: "STORAGE_UNAVAILABLE", text };
}
