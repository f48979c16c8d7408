/**
 * Leases over home and cells: one lease has a row in each. Home's decides who holds it; the others hold the
 * attempts of their cells. A cell that was away does not have those that were opened meanwhile, and may have
 * ended others: their attempts went back to its queue then, as those of a lost node, and are fenced by their
 * numbers. So a lease that home renews is opened again wherever it is missing.
 */
import { HOME_CELL } from "../../tasks/id.ts";
import type { Task } from "../../tasks/task.ts";
import type { LeasedTask, LeaseStorage } from "../leases.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import { type Cell, isUnanswered } from "./cell.ts";
import type { Cells } from "./cells.ts";

type Opened = Parameters<LeaseStorage["openLease"]>[0];
type Adopted = Parameters<LeaseStorage["adoptLease"]>[0];

/** After how long without a renewal a node forgets a lease, as one that it has left to another node. */
const LEFT_AFTER_MS = 3_600_000;

export class CellLeases implements LeaseStorage {
  readonly #cells: Cells;
  /** The leases that this node has opened or adopted, as it did, and when it last renewed each. */
  readonly #held = new Map<string, { readonly opened: Opened; atMs: number }>();

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  async openLease(opened: Opened): Promise<void> {
    await this.#cells.each((storage) => storage.openLease(opened));
    this.#hold(opened);
  }

  async adoptLease(adopted: Adopted): Promise<LeasedTask[] | undefined> {
    const atHome = await this.#cells.home.adoptLease(adopted);
    if (atHome === undefined) {
      return undefined;
    }
    this.#forget(adopted.leaseId);
    const { newLeaseId: leaseId, newSession: session, owner, nowMs, ttlMs } = adopted;
    const opened = { leaseId, session, owner, nowMs, ttlMs };
    this.#hold(opened);
    const inCells = await Promise.all(this.#cells.up.map((cell) => adoptIn(cell, adopted, opened)));
    return [...atHome, ...inCells.flat()];
  }

  async renewLeases(renewed: Parameters<LeaseStorage["renewLeases"]>[0]): Promise<string[]> {
    this.#forgetLeft(renewed.leaseIds);
    const held = await this.#cells.home.renewLeases(renewed);
    const isHeld = new Set(held);
    for (const leaseId of renewed.leaseIds.filter((one) => !isHeld.has(one))) {
      this.#forget(leaseId);
    }
    const { nowMs, ttlMs } = renewed;
    await this.#cells.each(async (storage, number) => {
      if (number === HOME_CELL) {
        return;
      }
      const there = new Set(await storage.renewLeases({ leaseIds: held, nowMs, ttlMs }));
      for (const leaseId of held) {
        const opened = this.#held.get(leaseId)?.opened;
        if (!there.has(leaseId) && opened !== undefined) {
          await storage.openLease({ ...opened, nowMs, ttlMs });
        }
      }
    });
    return held;
  }

  async closeLease(closed: Parameters<LeaseStorage["closeLease"]>[0]): Promise<Task[]> {
    const { leaseId } = closed;
    // First, so that a renewal under way does not open it again.
    this.#held.delete(leaseId);
    const tasks = await this.#cells.each((storage) => storage.closeLease(closed));
    this.#forget(leaseId);
    return tasks.flat();
  }

  async rescueExpired(which: Parameters<LeaseStorage["rescueExpired"]>[0]): Promise<Task[]> {
    return (await this.#cells.each((storage) => storage.rescueExpired(which))).flat();
  }

  #hold(opened: Opened): void {
    this.#held.set(opened.leaseId, { opened, atMs: performance.now() });
  }

  #forgetLeft(renewed: readonly string[]): void {
    const nowMs = performance.now();
    for (const leaseId of renewed) {
      const held = this.#held.get(leaseId);
      if (held !== undefined) {
        held.atMs = nowMs;
      }
    }
    for (const [leaseId, { atMs }] of this.#held) {
      if (atMs + LEFT_AFTER_MS < nowMs) {
        this.#forget(leaseId);
      }
    }
  }

  #forget(leaseId: string): void {
    this.#held.delete(leaseId);
    for (const { doubtful } of this.#cells.list) {
      doubtful.delete(leaseId);
    }
  }
}

/**
 * Adopts the attempts of one cell. Where the cell does not answer, it may have moved them all the same, and
 * nobody would end them: so those that it had are taken for moved. If they were not, their ends are stale.
 */
async function adoptIn(cell: Cell, adopted: Adopted, opened: Opened): Promise<LeasedTask[]> {
  let moved: LeasedTask[] = [];
  try {
    moved = await cell.ask((storage) => tasksUnder(storage, adopted));
    const answer = await cell.ask((storage) => storage.adoptLease(adopted));
    moved = answer ?? [];
    if (answer === undefined) {
      await cell.ask((storage) => storage.openLease(opened));
    }
  } catch (err) {
    if (!isUnanswered(err)) {
      throw err;
    }
  }
  return moved;
}

/** The tasks of a lease that is adopted, as they are when they have moved. */
async function tasksUnder(
  storage: PostgresStorage,
  { leaseId, newLeaseId }: Adopted,
): Promise<LeasedTask[]> {
  const attempts = await storage.listAttempts({ leaseIds: [leaseId] });
  const found = await Promise.all(attempts.map((attempt) => storage.getTask(attempt)));
  return found.flatMap((task) => (task === undefined ? [] : [{ task, leaseId: newLeaseId }]));
}

/** Whether a cell may have given tasks to these leases without having answered. */
export function isInDoubt({ doubtful }: Cell, leaseIds: readonly string[]): boolean {
  return leaseIds.some((leaseId) => doubtful.has(leaseId));
}
