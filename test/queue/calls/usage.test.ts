import { expect, it } from "vitest";
import { CallUsage, type CallUse } from "../../../src/queue/calls/usage.ts";
import { dayOf } from "../../../src/storage/days.ts";
import type { UsageStorage } from "../../../src/storage/hosting/usage.ts";

type Flush = Parameters<UsageStorage["addUsage"]>[0];

const NOW_MS = 1_750_000_000_000;
const LOG = { debug() {}, info() {}, warn() {}, error() {} };

function use(changes: Partial<CallUse> = {}): CallUse {
  return {
    ...{ deploymentId: "one", endpoint: "greet", tokenId: "token" },
    ...{ calls: 1, runMs: 10, gpuMs: 1, bytesIn: 2, bytesOut: 3, units: { tokens: 4 } },
    ...changes,
  };
}

function usage(fails: () => boolean = () => false) {
  const flushes: Flush[] = [];
  const storage = {
    addUsage: async (flush: Flush) => {
      flushes.push(flush);
      if (fails()) {
        throw new Error("the database does not answer");
      }
    },
  };
  const calls = new CallUsage({ storage, recorder: "node", now: () => NOW_MS, log: LOG });
  return { calls, flushes };
}

it("sums up calls by deployment, endpoint and token, and stores them together", async () => {
  const { calls, flushes } = usage();
  for (const one of [use(), use(), use({ tokenId: "" }), use({ units: { pages: 1 } })]) {
    calls.add(one);
  }
  await calls.flush();
  await calls.flush();
  const day = dayOf(NOW_MS);
  expect(flushes).toEqual([
    {
      ...{ recorder: "node", sequence: 1, day },
      rows: [
        {
          ...use({ calls: 3, runMs: 30, gpuMs: 3, bytesIn: 6, bytesOut: 9 }),
          ...{ day, units: { tokens: 8, pages: 1 } },
        },
        { ...use({ tokenId: "" }), day },
      ],
    },
  ]);
  await calls[Symbol.asyncDispose]();
});

it("sums up units that are called like what every object inherits", async () => {
  const { calls, flushes } = usage();
  for (const names of [[], ["constructor"], ["constructor", "toString"]]) {
    calls.add(use({ units: Object.fromEntries(names.map((name) => [name, 2])) }));
  }
  await calls[Symbol.asyncDispose]();
  expect(flushes[0]?.rows[0]?.units).toEqual({ constructor: 4, toString: 2 });
});

it("repeats a flush that may not have been stored under its number, and then the rest", async () => {
  let isAway = true;
  const { calls, flushes } = usage(() => isAway);
  calls.add(use());
  await expect(calls.flush()).rejects.toThrow("does not answer");
  calls.add(use());
  isAway = false;
  await calls[Symbol.asyncDispose]();
  expect(flushes.map(({ sequence, rows }) => [sequence, rows[0]?.calls])).toEqual([
    ...[
      [1, 1],
      [1, 1],
    ],
    [2, 1],
  ]);
});

it("keeps a bounded number of sums while the storage is away", async () => {
  let isAway = true;
  const { calls, flushes } = usage(() => isAway);
  for (let at = 0; at < 20_000; at++) {
    calls.add(use({ endpoint: `endpoint-${at}` }));
  }
  await expect(calls.flush()).rejects.toThrow("does not answer");
  isAway = false;
  await calls[Symbol.asyncDispose]();
  expect(Math.max(...flushes.map(({ rows }) => rows.length))).toBe(5_000);
});
