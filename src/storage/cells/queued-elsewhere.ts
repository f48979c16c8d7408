/**
 * The limit of a queue over several databases. Each counts its own part, so a submit is given what is left
 * of the limit after the others' parts. These were counted at most a second ago, so submits at several cells
 * at a time may exceed the limit by what is submitted in a second.
 */
import { SharedReads } from "../../time/shared-reads.ts";
import type { QueueCount } from "../queues.ts";
import type { NewTask } from "../storage.ts";
import type { Cells } from "./cells.ts";

/** How old the counts of the other databases may be when a submit is given its part of the limit. */
const COUNTED_FOR_MS = 1_000;

/** What waits and runs in each database, by its number. */
type Counts = ReadonlyMap<number, readonly QueueCount[]>;

/** A task with what is left to it of its limit, and how many of its endpoint wait elsewhere. */
export interface Limited {
  readonly task: NewTask;
  readonly elsewhere: number;
}

export class QueuedElsewhere {
  readonly #cells: Cells;
  /** By the deployment. */
  readonly #counts = new SharedReads<Counts>({
    maxAgeMs: COUNTED_FOR_MS,
    now: () => performance.now(),
  });

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  /** Lowers the limits of tasks that are to wait in a cell. */
  async limit(tasks: readonly NewTask[], cell: number): Promise<Limited[]> {
    return Promise.all(
      tasks.map(async (task) => {
        if (task.leaseId !== undefined) {
          return { task, elsewhere: 0 };
        }
        const elsewhere = await this.#elsewhere(task, cell);
        return elsewhere === 0
          ? { task, elsewhere }
          : { task: { ...task, queueLimit: Math.max(0, task.queueLimit - elsewhere) }, elsewhere };
      }),
    );
  }

  async #elsewhere({ deploymentId, endpoint }: NewTask, cell: number): Promise<number> {
    let elsewhere = 0;
    for (const [number, counts] of await this.#counted(deploymentId)) {
      const own = number === cell ? undefined : counts.find((one) => one.endpoint === endpoint);
      elsewhere += Math.max(0, own?.queued ?? 0);
    }
    return elsewhere;
  }

  #counted(deploymentId: string): Promise<Counts> {
    return this.#counts.get(
      deploymentId,
      async () =>
        new Map(
          await this.#cells.each(
            async (storage, number) =>
              [number, await storage.countTasks({ deploymentId })] as const,
          ),
        ),
    );
  }
}
