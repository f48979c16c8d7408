import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { UseRecorder } from "../../src/auth/token-uses.ts";
import type { Tokens } from "../../src/storage/accounts/tokens.ts";
import { onOwnTimers } from "../own-timers.ts";

type Uses = Parameters<Tokens["recordUses"]>[0]["uses"];

const token = (id: number | string) => ({ tokenId: `token ${id}`, organizationId: "acme" });

function recorder() {
  const state = { batches: [] as Uses[], isAway: false };
  const uses = new UseRecorder({
    accounts: {
      async recordUses({ uses: batch }) {
        if (state.isAway) {
          throw new Error("away");
        }
        state.batches.push(structuredClone(batch));
      },
    },
    log: pino({ level: "silent" }),
  });
  return { uses, state };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

describe("uses of tokens", () => {
  it(
    "are written every 5 s, the last of each token, and never when there are none",
    onOwnTimers(async (left) => {
      const { uses, state } = recorder();
      await using _uses = uses;
      uses.note(token(1), 1, "a");
      uses.note(token(2), 2, "b");
      uses.note(token(1), 3, "c");
      await vi.advanceTimersByTimeAsync(4_999);
      expect(state.batches).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect(state.batches).toEqual([
        [
          { ...token(1), timeMs: 3, address: "c" },
          { ...token(2), timeMs: 2, address: "b" },
        ],
      ]);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(state.batches).toHaveLength(1);
      expect(left()).toBe(0);
    }),
  );

  it(
    "are written at the end, too",
    onOwnTimers(async (left) => {
      const { uses, state } = recorder();
      uses.note(token(1), 1, "a");
      await uses[Symbol.asyncDispose]();
      expect(state.batches).toHaveLength(1);
      expect(left()).toBe(0);
    }),
  );

  it("are tried again when they could not be written, without undoing later ones", async () => {
    const { uses, state } = recorder();
    await using _uses = uses;
    state.isAway = true;
    uses.note(token(1), 1, "a");
    uses.note(token(2), 2, "b");
    const writing = uses.flush();
    uses.note(token(1), 3, "c");
    await writing;
    state.isAway = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(state.batches.flat().toSorted((a, b) => a.timeMs - b.timeMs)).toEqual([
      { ...token(2), timeMs: 2, address: "b" },
      { ...token(1), timeMs: 3, address: "c" },
    ]);
  });

  it("are written a thousand at a time, and kept of so many tokens and no more", async () => {
    const { uses, state } = recorder();
    await using _uses = uses;
    for (let index = 0; index < 25_000; index += 1) {
      uses.note(token(index), index, "a");
    }
    await uses.flush();
    expect(state.batches.map((batch) => batch.length)).toEqual(Array(20).fill(1_000));
    expect(state.batches[0]?.[0]?.timeMs).toBe(5_000);
  });
});
