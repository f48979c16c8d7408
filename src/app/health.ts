/** The health of a node of the platform, from its heartbeats and from what the database answers. */

import { Readiness } from "../server/readiness.ts";

/** Whether the node is ready: a node that stops is not, whatever its last heartbeats say. */
export class Health {
  readonly readiness = new Readiness();
  #stopped = false;

  constructor(resources: AsyncDisposableStack) {
    resources.defer(() => this.stop());
  }

  databaseAnswers(answers: boolean): void {
    this.readiness.set(answers && !this.#stopped);
  }

  stop(): void {
    this.#stopped = true;
    this.readiness.set(false);
  }
}
