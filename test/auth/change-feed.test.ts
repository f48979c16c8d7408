import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ChangeFeed, type Forgotten } from "../../src/auth/change-feed.ts";
import type { Change } from "../../src/storage/accounts/accounts.ts";
import type { Hint, Notifier } from "../../src/storage/notifier.ts";

const EVERYTHING: Forgotten = { kind: "everything" };

/** A log of changes as a database keeps it, and what a feed has told of it. */
class Changes {
  #log: Change[] = [];
  #latest = 0;
  reads = 0;
  isAway = false;
  told: Forgotten[] = [];
  published: Hint[] = [];
  listener: ((hint: Hint) => void) | undefined;
  timeMs = 0;
  /** Answers wait for it. */
  gate: Promise<void> = Promise.resolve();

  add(...ids: readonly string[]): void {
    for (const id of ids) {
      this.#latest += 1;
      this.#log.push({ sequence: this.#latest, kind: "token", id });
    }
  }

  prune(): void {
    this.#log = [];
  }

  restore(latest: number): void {
    this.#log = this.#log.filter(({ sequence }) => sequence <= latest);
    this.#latest = latest;
  }

  feed(): ChangeFeed {
    const notifier: Notifier = {
      isUp: true,
      start: () => undefined,
      publish: (hint) => void this.published.push(hint),
      subscribe: (listener) => {
        this.listener = listener;
        return () => {
          this.listener = undefined;
        };
      },
      async [Symbol.asyncDispose]() {},
    };
    const feed = new ChangeFeed({
      accounts: { listChanges: (parameters) => this.#list(parameters) },
      notifier,
      log: pino({ level: "silent" }),
      monotonicMs: () => this.timeMs,
    });
    feed.listen((forgotten) => void this.told.push(...forgotten));
    return feed;
  }

  async #list({ afterSequence, limit }: { afterSequence: number; limit: number }) {
    this.reads += 1;
    const found = {
      changes: this.#log.filter(({ sequence }) => sequence > afterSequence).slice(0, limit),
      latest: this.#latest,
    };
    await this.gate;
    if (this.isAway) {
      throw new Error("away");
    }
    return found;
  }

  /** The ids told since the last time. */
  take(): string[] {
    const ids = this.told.map((each) => (each.kind === "everything" ? "*" : each.id));
    this.told = [];
    return ids;
  }
}

let changes: Changes;
let feed: ChangeFeed;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  changes = new Changes();
  feed = changes.feed();
});
afterEach(async () => {
  await feed[Symbol.asyncDispose]();
  vi.useRealTimers();
});

/** Lets time pass, for the clock and for timers. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    changes.timeMs += Math.min(50, left);
    await vi.advanceTimersByTimeAsync(Math.min(50, left));
  }
}

describe("changes", () => {
  it("are told from the start on, in order, each once", async () => {
    changes.add("before");
    await feed.start();
    expect(changes.told).toEqual([EVERYTHING]);
    changes.take();
    changes.add("a", "b");
    await feed.catchUp();
    changes.add("c");
    await feed.catchUp();
    await feed.catchUp();
    expect(changes.take()).toEqual(["a", "b", "c"]);
  });

  it("are all told when there are more than one read takes", async () => {
    await feed.start();
    changes.take();
    const ids = Array.from({ length: 2_500 }, (_, index) => String(index));
    changes.add(...ids);
    await feed.catchUp();
    expect(changes.take()).toEqual(ids);
    expect(feed.isFresh()).toBe(true);
  });

  it("that were pruned unread, or are undone by a backup, make everything forgotten", async () => {
    await feed.start();
    changes.add("a");
    changes.prune();
    changes.take();
    await feed.catchUp();
    expect(changes.take()).toEqual(["*"]);
    changes.add("b", "c");
    changes.prune();
    changes.add("d");
    await feed.catchUp();
    expect(changes.take()).toEqual(["*"]);
    changes.restore(1);
    await feed.catchUp();
    expect(changes.take()).toEqual(["*"]);
    changes.add("e");
    await feed.catchUp();
    expect(changes.take()).toEqual(["e"]);
  });

  it("are read at once on a hint of another node, and others are told of one's own", async () => {
    await feed.start();
    changes.take();
    for (const kind of ["accounts", "look"] as const) {
      changes.add(kind);
      changes.listener?.({ kind });
      await vi.advanceTimersByTimeAsync(0);
      expect(changes.take()).toEqual([kind]);
    }
    const { reads } = changes;
    changes.listener?.({ kind: "abort", taskId: "x" });
    expect(changes.reads).toBe(reads);
    await feed.catchUp();
    expect(changes.published).toEqual([{ kind: "accounts" }]);
  });

  it("made during a read are seen by who catches up meanwhile, with one more read for all", async () => {
    await feed.start();
    const gate = Promise.withResolvers<void>();
    changes.gate = gate.promise;
    const early = feed.catchUp();
    changes.add("a");
    changes.take();
    const { reads } = changes;
    const late = Promise.all(Array.from({ length: 100 }, () => feed.catchUp()));
    gate.resolve();
    await early;
    expect(changes.take()).toEqual([]);
    await late;
    expect(changes.take()).toEqual(["a"]);
    expect(changes.reads).toBe(reads + 1);
  });
});

describe("the feed", () => {
  it("reads every 750 ms while anybody asks whether it is fresh, and every 20 s otherwise", async () => {
    await feed.start();
    feed.isFresh();
    const { reads } = changes;
    await pass(7_500);
    expect(changes.reads - reads).toBe(10);
    await pass(30_000);
    const idle = changes.reads;
    await pass(60_000);
    expect(changes.reads - idle).toBe(3);
  });

  it("reads at once when somebody asks after a while", async () => {
    await feed.start();
    await pass(55_000);
    const { reads } = changes;
    expect(feed.isFresh()).toBe(false);
    expect(changes.reads).toBe(reads + 1);
    await vi.advanceTimersByTimeAsync(0);
    expect(feed.isFresh()).toBe(true);
    expect(changes.reads).toBe(reads + 1);
  });

  it("is not fresh before its first read, nor when one takes too long", async () => {
    expect(feed.isFresh()).toBe(false);
    await feed.start();
    expect(feed.isFresh()).toBe(true);
    const gate = Promise.withResolvers<void>();
    changes.gate = gate.promise;
    await pass(1_950);
    expect(feed.isFresh()).toBe(true);
    await pass(50);
    expect(feed.isFresh()).toBe(false);
    gate.resolve();
    await vi.advanceTimersByTimeAsync(0);
    // The read began too long ago to be worth anything; the next one is fresh again.
    await pass(750);
    expect(feed.isFresh()).toBe(true);
  });

  it("is not fresh after a read that failed, goes on, and misses nothing", async () => {
    await feed.start();
    changes.isAway = true;
    await feed.catchUp();
    expect(feed.isFresh()).toBe(false);
    changes.add("a");
    changes.take();
    changes.isAway = false;
    await pass(1_000);
    expect(feed.isFresh()).toBe(true);
    expect(changes.take()).toEqual(["a"]);
  });

  it("ends", async () => {
    await feed.start();
    const { reads } = changes;
    await feed[Symbol.asyncDispose]();
    await feed[Symbol.asyncDispose]();
    await feed.catchUp();
    await pass(60_000);
    expect(changes.reads).toBe(reads);
    expect(changes.listener).toBeUndefined();
  });
});
