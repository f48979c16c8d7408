/**
 * Desired state: reads from the database which deployments should run. Change
 * events report changes, usually at once. A full read every 30 s catches missed
 * ones, and follows soon after a read that failed.
 */
import type { ChangeFeed, Forgotten } from "../auth/change-feed.ts";
import type { Log } from "../log/log.ts";
import type { DesiredDeployment, Revisions } from "../storage/hosting/revisions.ts";
import { SingleFlight } from "../time/single-flight.ts";
import { Timer } from "../time/timer.ts";

/** Interval at which a node reads all its desired deployments again, in case a hint was lost. */
const DESIRED_STATE_RESYNC_INTERVAL_MS = 30_000;

/**
 * Pause after a failed read of the desired deployments, give or take a third, so that nodes do
 * not move in step.
 */
const DESIRED_STATE_RETRY_PAUSE_MS = 1_500;

/** Desired deployments in one read. */
const MAX_DEPLOYMENTS_PER_READ = 500;

interface DesiredDeploymentsOptions {
  readonly hosting: Pick<Revisions, "getHosted" | "listHosted">;
  readonly changes: ChangeFeed;
  readonly log: Log;
  /** Ids of the deployments that run or are known here. */
  readonly known: () => readonly string[];
  /** The desired state of a deployment; called on each read, changed or not. */
  onRecord(record: DesiredDeployment): void;
  /** A known deployment was deleted. */
  onGone(deploymentId: string): void;
}

export class DesiredDeployments implements AsyncDisposable {
  readonly #options: DesiredDeploymentsOptions;
  /** Reads of one deployment that are under way, by id. */
  readonly #looks = new Map<string, Promise<void>>();
  #unlisten: () => void = () => {};
  #timer: Timer | undefined;
  readonly #all = new SingleFlight(() => this.#readAll());
  #again: NodeJS.Timeout | undefined;
  #isAway = false;

  constructor(options: DesiredDeploymentsOptions) {
    this.#options = options;
  }

  /** Resolves when all deployments were read. Rejects when the storage does not answer. */
  async start(): Promise<void> {
    this.#unlisten = this.#options.changes.listen((forgotten) => this.#hear(forgotten));
    await this.#all.run();
    this.#timer = new Timer(
      DESIRED_STATE_RESYNC_INTERVAL_MS,
      () => this.#all.run(),
      () => {}, // `#readAll` has logged it.
    );
  }

  /** Reads one deployment, after any read of it that is under way. */
  lookAt(deploymentId: string): Promise<void> {
    const before = this.#looks.get(deploymentId) ?? Promise.resolve();
    const look = before
      .catch(() => undefined)
      .then(() => this.#readOne(deploymentId))
      .finally(() => {
        if (this.#looks.get(deploymentId) === look) {
          this.#looks.delete(deploymentId);
        }
      });
    this.#looks.set(deploymentId, look);
    return look;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unlisten();
    await this.#timer?.[Symbol.asyncDispose]();
    this.#timer = undefined;
    clearTimeout(this.#again);
    await this.#all[Symbol.asyncDispose]();
    await Promise.allSettled(this.#looks.values());
  }

  #hear(forgotten: readonly Forgotten[]): void {
    for (const change of forgotten) {
      if (change.kind === "deployment") {
        this.lookAt(change.id).catch((err: unknown) => this.#away(err));
      } else if (change.kind === "everything" || change.kind === "organization") {
        this.#lookAtAll();
      }
    }
  }

  async #readOne(deploymentId: string): Promise<void> {
    const { hosting, onRecord, onGone } = this.#options;
    const record = await hosting.getHosted({ deploymentId });
    if (record === undefined) {
      onGone(deploymentId);
    } else {
      onRecord(record);
    }
  }

  #lookAtAll(): void {
    this.#all.run().catch(() => {
      // `#readAll` has logged it.
    });
  }

  async #readAll(): Promise<void> {
    const { hosting, known, onRecord, onGone } = this.#options;
    try {
      const there = new Set<string>();
      // Taken first: a deployment made during the read may be missing from its page.
      const before = known();
      let after: string | undefined;
      do {
        const page = await hosting.listHosted({
          limit: MAX_DEPLOYMENTS_PER_READ,
          ...(after !== undefined && { after }),
        });
        for (const record of page.items) {
          there.add(record.deploymentId);
          onRecord(record);
        }
        after = page.next;
      } while (after !== undefined);
      for (const deploymentId of before.filter((id) => !there.has(id))) {
        onGone(deploymentId);
      }
      this.#isAway = false;
    } catch (err) {
      this.#away(err);
      throw err;
    }
  }

  #away(err: unknown): void {
    if (!this.#isAway) {
      this.#options.log.warn({ err }, "the deployments could not be read: what runs goes on");
    }
    this.#isAway = true;
    if (this.#timer !== undefined && this.#again === undefined) {
      const afterMs = DESIRED_STATE_RETRY_PAUSE_MS * (2 / 3 + (Math.random() * 2) / 3);
      this.#again = setTimeout(() => {
        this.#again = undefined;
        this.#lookAtAll();
      }, afterMs);
    }
  }
}
