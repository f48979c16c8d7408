/**
 * Tells joined workers whether their machine is drained: as they join, and after a change, which
 * the change feed announces with their organization. A read that fails leaves them as they were,
 * and is made up for by the next change, or as they register again.
 */
import type { ChangeFeed } from "../../auth/change-feed.ts";
import type { Log } from "../../log/log.ts";
import type { MachineStorage } from "../../storage/hosting/machines.ts";
import type { WorkerSession, WorkerSessions } from "./remote-sessions.ts";

export interface DrainedMachinesOptions {
  readonly hosting: Pick<MachineStorage, "listDrained">;
  readonly changes: Pick<ChangeFeed, "listen">;
  readonly sessions: Pick<WorkerSessions, "of">;
  readonly log: Log;
}

export class DrainedMachines {
  readonly #options: DrainedMachinesOptions;
  #reads = 0;
  /** The read that told each worker last. */
  readonly #told = new WeakMap<WorkerSession, number>();

  constructor(options: DrainedMachinesOptions) {
    this.#options = options;
    options.changes.listen((forgotten) => {
      for (const change of forgotten) {
        if (change.kind === "everything") {
          this.#look(options.sessions.of());
        } else if (change.kind === "organization") {
          this.#look(options.sessions.of(change.id));
        }
      }
    });
  }

  /** Tells a worker that joins. */
  async apply(session: WorkerSession): Promise<void> {
    await this.#tell(session.organizationId, [session]);
  }

  #look(sessions: readonly WorkerSession[]): void {
    for (const [organizationId, own] of Map.groupBy(sessions, (one) => one.organizationId)) {
      this.#tell(organizationId, own).catch((err: unknown) =>
        this.#options.log.warn({ err }, "which machines are drained could not be read"),
      );
    }
  }

  async #tell(organizationId: string, sessions: readonly WorkerSession[]): Promise<void> {
    this.#reads += 1;
    const read = this.#reads;
    const listed = await this.#options.hosting.listDrained({ organizationId });
    const drained = new Set(listed.map(({ machine }) => machine));
    for (const session of sessions) {
      // One that began before another may end after it, and knows less.
      if ((this.#told.get(session) ?? 0) < read) {
        this.#told.set(session, read);
        session.worker.drained(drained.has(session.worker.machine.hostname));
      }
    }
  }
}
