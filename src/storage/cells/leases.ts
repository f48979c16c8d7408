/**
 * Leases over home and cells: one lease has a row in each. Home's decides who holds it; the others hold the
 * attempts of their cells. A cell that was away does not have those that were opened meanwhile, and may have
 * ended others: their attempts went back to its queue then, as those of a lost node, and are fenced by their
 * numbers. So a lease that home renews is opened again wherever it is missing.
 */
import { HOME_CELL } from "../../tasks/id.ts";
import type { Task } from "../../tasks/task.ts";
import type { LeasedTask, LeaseStorage } from "../leases.ts";
import type { Cell } from "./cell.ts";
import type { Cells } from "./cells.ts";

type Opened = Parameters<LeaseStorage["openLease"]>[0];

export class CellLeases implements LeaseStorage {
  readonly #cells: Cells;
  /** The leases that this node has opened or adopted, as it did. */
  readonly #held = new Map<string, Opened>();

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  async openLease(opened: Opened): Promise<void> {
    this.#held.set(opened.leaseId, opened);
    await this.#cells.each((storage) => storage.openLease(opened));
  }

  async adoptLease(
    adopted: Parameters<LeaseStorage["adoptLease"]>[0],
  ): Promise<LeasedTask[] | undefined> {
    const atHome = await this.#cells.home.adoptLease(adopted);
    if (atHome === undefined) {
      return undefined;
    }
    const { newLeaseId: leaseId, newSession: session, owner, nowMs, ttlMs } = adopted;
    const opened = { leaseId, session, owner, nowMs, ttlMs };
    this.#held.set(leaseId, opened);
    const inCells = await this.#cells.each(async (storage, number) => {
      if (number === HOME_CELL) {
        return [];
      }
      const moved = await storage.adoptLease(adopted);
      if (moved === undefined) {
        await storage.openLease(opened);
      }
      return moved ?? [];
    });
    return [...atHome, ...inCells.flat()];
  }

  async renewLeases(renewed: Parameters<LeaseStorage["renewLeases"]>[0]): Promise<string[]> {
    const held = await this.#cells.home.renewLeases(renewed);
    const { nowMs, ttlMs } = renewed;
    await this.#cells.each(async (storage, number) => {
      if (number === HOME_CELL) {
        return;
      }
      const there = new Set(await storage.renewLeases({ leaseIds: held, nowMs, ttlMs }));
      for (const leaseId of held) {
        const opened = this.#held.get(leaseId);
        if (!there.has(leaseId) && opened !== undefined) {
          await storage.openLease({ ...opened, nowMs, ttlMs });
        }
      }
    });
    return held;
  }

  async closeLease(closed: Parameters<LeaseStorage["closeLease"]>[0]): Promise<Task[]> {
    const { leaseId } = closed;
    this.#held.delete(leaseId);
    const tasks = await this.#cells.each((storage) => storage.closeLease(closed));
    for (const cell of this.#cells.list) {
      cell.doubtful.delete(leaseId);
    }
    return tasks.flat();
  }

  async rescueExpired(which: Parameters<LeaseStorage["rescueExpired"]>[0]): Promise<Task[]> {
    return (await this.#cells.each((storage) => storage.rescueExpired(which))).flat();
  }
}

/** Whether a cell that is away may have given tasks to these leases without having answered. */
export function isInDoubt({ isUp, doubtful }: Cell, leaseIds: readonly string[]): boolean {
  return !isUp && leaseIds.some((leaseId) => doubtful.has(leaseId));
}
