/**
 * Which deployments there should be, as the database has it. A change is heard
 * of by its event, usually at once; every few seconds all of it is read, so
 * nothing is missed for long.
 */
import type { ChangeFeed, Forgotten } from "../auth/changes.ts";
import type { Log } from "../queue/log.ts";
import { Timer } from "../queue/timer.ts";
import type { HostedRecord, Revisions } from "../storage/hosting/revisions.ts";

const LOOK_EVERY_MS = 5_000;

/** Records read at once. */
const PAGE = 500;

export interface RecordsOptions {
  readonly hosting: Pick<Revisions, "getHosted" | "listHosted">;
  readonly changes: ChangeFeed;
  readonly log: Log;
  /** The deployments that are known so far. */
  readonly known: () => readonly string[];
  /** How a deployment should be; told again and again. */
  onRecord(record: HostedRecord): void;
  /** A deployment that was known is not there any more. */
  onGone(deploymentId: string): void;
}

export class Records implements AsyncDisposable {
  readonly #options: RecordsOptions;
  /** Looks at one deployment that are under way. */
  readonly #looks = new Map<string, Promise<void>>();
  #unlisten: () => void = () => {};
  #timer: Timer | undefined;
  #looking: Promise<void> | undefined;
  #isAway = false;

  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  /** Returns when all have been told. Rejects when the storage does not answer. */
  async start(): Promise<void> {
    this.#unlisten = this.#options.changes.listen((forgotten) => this.#hear(forgotten));
    await this.#look();
    this.#timer = new Timer(
      LOOK_EVERY_MS,
      () => this.#look(),
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
    await Promise.allSettled([this.#looking, ...this.#looks.values()]);
  }

  #hear(forgotten: readonly Forgotten[]): void {
    for (const change of forgotten) {
      if (change.kind === "deployment") {
        this.lookAt(change.id).catch((err: unknown) => this.#away(err));
      } else if (change.kind === "everything" || change.kind === "organization") {
        this.#look().catch(() => {
          // It has been told already.
        });
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

  #look(): Promise<void> {
    this.#looking ??= this.#readAll().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #readAll(): Promise<void> {
    const { hosting, known, onRecord, onGone } = this.#options;
    try {
      const there = new Set<string>();
      // One that becomes known meanwhile may have been made after its page was read.
      const before = known();
      let after: string | undefined;
      do {
        const page = await hosting.listHosted({
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
  }
}
