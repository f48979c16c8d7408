import { describe, expect, it } from "vitest";
import type { Forgotten } from "../../src/auth/change-feed.ts";
import { type Cacheable, LookupCache } from "../../src/auth/lookup-cache.ts";

class Thing implements Cacheable {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  dependsOn(forgotten: Forgotten): boolean {
    return forgotten.kind === "everything" || forgotten.id === this.id;
  }
}

const change = (id: string): Forgotten => ({ kind: "token", id });

function things(capacity?: number) {
  const state = { isFresh: true, timeMs: 0, asked: 0 };
  const lookups = new LookupCache<Thing>({
    isFresh: () => state.isFresh,
    monotonicMs: () => state.timeMs,
    ...(capacity !== undefined && { capacity }),
  });
  const ask = (id: string, answer: Promise<Thing | undefined> = Promise.resolve(new Thing(id))) =>
    lookups.ask(id, () => {
      state.asked += 1;
      return answer;
    });
  return { lookups, state, ask };
}

describe("what was found", () => {
  it("is remembered for 30 s from when it was asked, however often it is used", async () => {
    const { lookups, state, ask } = things();
    expect(lookups.recall("a")).toBeUndefined();
    const found = await ask("a");
    for (state.timeMs = 0; state.timeMs < 30_000; state.timeMs += 1_000) {
      expect(lookups.recall("a")).toBe(found);
    }
    expect(lookups.recall("a")).toBeUndefined();
  });

  it("is remembered of those used last", async () => {
    const { lookups, ask } = things(3);
    for (const id of ["a", "b", "c"]) {
      await ask(id);
    }
    lookups.recall("a");
    await ask("d");
    expect(["a", "b", "c", "d"].map((id) => lookups.recall(id)?.id)).toEqual([
      "a",
      undefined,
      "c",
      "d",
    ]);
    expect(lookups.size).toBe(3);
  });

  it("is forgotten when a change concerns it, and only then", async () => {
    const { lookups, ask } = things();
    await Promise.all([ask("a"), ask("b")]);
    lookups.forget([change("a"), change("c")]);
    expect(lookups.recall("a")).toBeUndefined();
    expect(lookups.recall("b")?.id).toBe("b");
    lookups.forget(Array.from({ length: 51 }, (_, index) => change(String(index))));
    expect(lookups.recall("b")).toBeUndefined();
  });
});

describe("that nothing was found", () => {
  it("is remembered for 5 s, or until anything changes", async () => {
    const { lookups, state, ask } = things();
    await ask("a", Promise.resolve(undefined));
    state.timeMs = 4_999;
    expect(lookups.recall("a")).toBeNull();
    state.timeMs = 5_000;
    expect(lookups.recall("a")).toBeUndefined();
    await ask("a", Promise.resolve(undefined));
    lookups.forget([change("b")]);
    expect(lookups.recall("a")).toBeUndefined();
  });

  it("is remembered of so many and no more", async () => {
    const { lookups, ask } = things(100);
    for (let index = 0; index < 150; index += 1) {
      await ask(String(index), Promise.resolve(undefined));
    }
    expect(lookups.recall("49")).toBeUndefined();
    expect(lookups.recall("50")).toBeNull();
  });
});

describe("a query under way", () => {
  it("is shared for a second", async () => {
    const { lookups, state, ask } = things();
    const { promise, resolve } = Promise.withResolvers<Thing>();
    const first = ask("a", promise);
    expect(lookups.share("a")).toBe(first);
    expect(lookups.share("b")).toBeUndefined();
    state.timeMs = 1_000;
    expect(lookups.share("a")).toBeUndefined();
    resolve(new Thing("a"));
    await first;
    state.timeMs = 0;
    expect(lookups.share("a")).toBeUndefined();
  });

  it("that began before a change is neither remembered nor shared after it", async () => {
    const { lookups, ask } = things();
    const { promise, resolve } = Promise.withResolvers<Thing>();
    const early = ask("a", promise);
    lookups.forget([change("a")]);
    expect(lookups.share("a")).toBeUndefined();
    const late = ask("a");
    resolve(new Thing("a"));
    const stale = await early;
    const found = await late;
    expect(stale?.id).toBe("a");
    expect(lookups.recall("a")).toBe(found);
  });

  it("that ends late does not replace what was found meanwhile", async () => {
    const { lookups, state, ask } = things();
    const { promise, resolve } = Promise.withResolvers<Thing>();
    const slow = ask("a", promise);
    state.timeMs = 2_000;
    lookups.forget([change("b")]);
    const found = await ask("a");
    resolve(new Thing("a"));
    await slow;
    expect(lookups.recall("a")).toBe(found);
  });

  it("that fails is told to all who wait for it, and is asked again after", async () => {
    const { lookups, state, ask } = things();
    const failing = ask("a", Promise.reject(new Error("away")));
    const shared = lookups.share("a");
    await expect(failing).rejects.toThrow("away");
    await expect(shared).rejects.toThrow("away");
    expect(lookups.recall("a")).toBeUndefined();
    expect((await ask("a"))?.id).toBe("a");
    expect(state.asked).toBe(2);
  });
});

describe("queries under way", () => {
  it("are so many at most, whether they are shared or not", async () => {
    const { lookups, ask } = things();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const asked = Array.from({ length: 1_000 }, (_, index) => ask(String(index), promise));
    lookups.forget([change("x")]);
    asked.push(...Array.from({ length: 1_000 }, (_, index) => ask(String(index), promise)));
    expect(() => ask("one more")).toThrow("try again");
    resolve(undefined);
    await Promise.all(asked);
    expect((await ask("one more"))?.id).toBe("one more");
  });
});

describe("while changes cannot be read", () => {
  it("nothing is remembered, and nothing that was is used", async () => {
    const { lookups, state, ask } = things();
    await ask("a");
    await ask("b", Promise.resolve(undefined));
    state.isFresh = false;
    expect(lookups.recall("a")).toBeUndefined();
    expect(lookups.recall("b")).toBeUndefined();
    await ask("c");
    state.isFresh = true;
    expect(lookups.recall("c")).toBeUndefined();
    expect(lookups.recall("a")?.id).toBe("a");
  });
});
