import { expect, it } from "vitest";
import { ChangeFeed } from "../../src/auth/change-feed.ts";
import { DesiredDeployments } from "../../src/hosting/desired-state.ts";
import type { Change } from "../../src/storage/accounts/accounts.ts";
import type { DesiredDeployment } from "../../src/storage/hosting/revisions.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** Deployments as a database has them, and what has been told of them. */
class World implements AsyncDisposable {
  readonly versions = new Map<string, number>();
  readonly told: string[] = [];
  readonly reads: string[] = [];
  /** Answers of whole reads wait for it, each as of before. */
  gate: Promise<void> = Promise.resolve();
  isAway = false;
  readonly #changes: Change[] = [];
  readonly feed = new ChangeFeed({
    accounts: {
      listChanges: async ({ afterSequence }) => ({
        changes: this.#changes.filter(({ sequence }) => sequence > afterSequence),
        latest: this.#changes.length,
      }),
    },
    notifier: undefined,
    log: LOG,
  });
  readonly records = new DesiredDeployments({
    hosting: {
      getHosted: async ({ deploymentId }) => {
        this.#read(deploymentId);
        return this.#record(deploymentId);
      },
      listHosted: async () => {
        this.#read("all");
        const items = [...this.versions.keys()].flatMap((id) => this.#record(id) ?? []);
        await this.gate;
        return { items, next: undefined };
      },
    },
    changes: this.feed,
    log: LOG,
    known: () => [...this.versions.keys()],
    onRecord: ({ deploymentId, version }) => void this.told.push(`${deploymentId} ${version}`),
    onGone: (deploymentId) => void this.told.push(`${deploymentId} gone`),
  });

  async change(kind: Change["kind"], id: string): Promise<void> {
    this.versions.set("d", (this.versions.get("d") ?? 0) + 1);
    this.#changes.push({ sequence: this.#changes.length + 1, kind, id });
    await this.feed.catchUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.records[Symbol.asyncDispose]();
    await this.feed[Symbol.asyncDispose]();
  }

  #record(deploymentId: string): DesiredDeployment | undefined {
    const version = this.versions.get(deploymentId);
    return version === undefined ? undefined : ({ deploymentId, version } as DesiredDeployment);
  }

  #read(what: string): void {
    this.reads.push(what);
    if (this.isAway) {
      throw new Error("away");
    }
  }
}

it("a change that could not be looked at is looked at again soon", async () => {
  await using world = new World();
  await world.feed.start();
  await world.records.start();
  world.isAway = true;
  await world.change("deployment", "d");
  await expect.poll(() => world.reads).toContain("d");
  world.isAway = false;
  await expect.poll(() => world.told).toEqual(["d 1"]);
});

it("a change that comes while all are read is followed by another read", async () => {
  await using world = new World();
  await world.feed.start();
  await world.records.start();
  const gate = Promise.withResolvers<void>();
  world.gate = gate.promise;
  await world.change("organization", "o");
  await expect.poll(() => world.reads).toEqual(["all", "all"]);
  await world.change("organization", "o");
  gate.resolve();
  await expect.poll(() => world.told).toEqual(["d 1", "d 2"]);
});
