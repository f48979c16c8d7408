/**
 * Which deployments there should be, as the database has it. A change is heard
 * of by its event, usually at once; every half minute all of it is read, so
 * nothing is missed for long, and soon after what could not be read.
 */
import type { ChangeFeed, Forgotten } from "../auth/changes.ts";
import type { Log } from "../log/log.ts";
import type { DesiredDeployment, Revisions } from "../storage/hosting/revisions.ts";
import { SingleFlight } from "../time/single-flight.ts";
import { Timer } from "../time/timer.ts";

const LOOK_EVERY_MS = 30_000;

/** After a read that failed; give or take a third, so that nodes do not move in step. */
const AGAIN_MS = 1_500;

/** Records read at once. */
const PAGE = 500;

export interface DesiredDeploymentsOptions {
  readonly hosting: Pick<Revisions, "getDesired" | "listDesired">;
  readonly changes: ChangeFeed;
  readonly log: Log;
  /** The deployments that are known so far. */
  readonly known: () => readonly string[];
  /** How a deployment should be; told again and again. */
  onRecord(record: DesiredDeployment): void;
  /** A deployment that was known is not there any more. */
  onGone(deploymentId: string): void;
}

export class DesiredDeployments implements AsyncDisposable {
  readonly #options: DesiredDeploymentsOptions;
  /** Looks at one deployment that are under way. */
  readonly #looks = new Map<string, Promise<void>>();
  #unlisten: () => void = () => {};
  #timer: Timer | undefined;
  readonly #all = new SingleFlight(() => this.#readAll());
  #again: NodeJS.Timeout | undefined;
  #isAway = false;

  constructor(options: DesiredDeploymentsOptions) {
    this.#options = options;
  }

  /** Returns when all have been told. Rejects when the storage does not answer. */
  async start(): Promise<void> {
    this.#unlisten = this.#options.changes.listen((forgotten) => this.#hear(forgotten));
    await this.#all.run();
    this.#timer = new Timer(
      LOOK_EVERY_MS,
      () => this.#all.run(),
      () => {}, // It has been told already.
    );
  }

  /** Looks at one deployment; who asks while it is looked at waits for the look after. */
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
    const record = await hosting.getDesired({ deploymentId });
    if (record === undefined) {
      onGone(deploymentId);
    } else {
      onRecord(record);
    }
  }

  #lookAtAll(): void {
    this.#all.run().catch(() => {
      // It has been told already.
    });
  }

  async #readAll(): Promise<void> {
    const { hosting, known, onRecord, onGone } = this.#options;
    try {
      const there = new Set<string>();
      // One that becomes known meanwhile may have been made after its page was read.
      const before = known();
      let after: string | undefined;
      do {
        const page = await hosting.listDesired({
          limit: PAGE,
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
      const afterMs = AGAIN_MS * (2 / 3 + (Math.random() * 2) / 3);
      this.#again = setTimeout(() => {
        this.#again = undefined;
        this.#lookAtAll();
      }, afterMs);
    }
  }
}
