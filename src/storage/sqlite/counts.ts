/** Maintained counters of live tasks. */
import type { QueueCount } from "../queues.ts";
import type { Statements } from "./rows.ts";

interface Count {
  queued: number;
  running: number;
  changed: boolean;
}

/**
 * Maintained counters of queued and running tasks per endpoint. They are
 * written in the same transactions that move the tasks, one write per endpoint
 * and transaction, so tasks themselves are never counted.
 */
export class QueueCounts {
  readonly #db: Statements;
  readonly #counts = new Map<string, Map<string, Count>>();

  constructor(db: Statements) {
    this.#db = db;
  }

  /** Adds to the counters of an endpoint. */
  add(deploymentId: string, endpoint: string, delta: { queued?: number; running?: number }): void {
    const count = this.#count(deploymentId, endpoint);
    count.queued += delta.queued ?? 0;
    count.running += delta.running ?? 0;
    count.changed = true;
  }

  queued(deploymentId: string, endpoint: string): number {
    return this.#count(deploymentId, endpoint).queued;
  }

  list(deploymentId: string): QueueCount[] {
    const counts = this.#deployment(deploymentId);
    return [...counts].map(([endpoint, { queued, running }]) => ({ endpoint, queued, running }));
  }

  /** Writes the changed counters; called before every commit. */
  flush(): void {
    for (const [deploymentId, counts] of this.#counts) {
      for (const [endpoint, count] of counts) {
        if (count.changed) {
          this.#db.run(
            `INSERT INTO queue_counts (deployment_id, endpoint, queued, running)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET queued = ?3, running = ?4`,
            deploymentId,
            endpoint,
            count.queued,
            count.running,
          );
          count.changed = false;
        }
      }
    }
  }

  /** Drops a deployment whose counters were deleted. */
  drop(deploymentId: string): void {
    this.#counts.delete(deploymentId);
  }

  /** Drops the changes of a rolled-back transaction. */
  forget(): void {
    this.#counts.clear();
  }

  #count(deploymentId: string, endpoint: string): Count {
    const counts = this.#deployment(deploymentId);
    let count = counts.get(endpoint);
    if (count === undefined) {
      count = { queued: 0, running: 0, changed: false };
      counts.set(endpoint, count);
    }
    return count;
  }

  #deployment(deploymentId: string): Map<string, Count> {
    let counts = this.#counts.get(deploymentId);
    if (counts === undefined) {
      const rows = this.#db.all(
        "SELECT endpoint, queued, running FROM queue_counts WHERE deployment_id = ?",
        deploymentId,
      );
      counts = new Map(
        rows.map((row) => [
          String(row.endpoint),
          { queued: Number(row.queued), running: Number(row.running), changed: false },
        ]),
      );
      this.#counts.set(deploymentId, counts);
    }
    return counts;
  }
}
