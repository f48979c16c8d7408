import { describe, expect, it } from "vitest";
import { amongPoison } from "./poison.ts";
import { serve } from "./served.ts";

/** More of them is the larger run: 200, in CONTRIBUTING.md. */
const INNOCENTS = Number(process.env.TESSERA_POISON_INNOCENTS ?? 16);

describe.each([1, 2])("innocent tasks beside poison, with %i workers", (workers) => {
  it("all succeed, the poison fails within four deaths, and the queue goes on", async () => {
    await using served = await serve("poison", { workers, graceMs: 300 });
    const poison = ["exit", "abort", "loop"];
    const harm = await amongPoison(served, { innocents: INNOCENTS, ms: 700, poison });
    expect(harm.failed).toEqual([]);
    expect(harm.poison).toMatchObject({
      exit: { status: "failure", reason: "worker_lost" },
      abort: { status: "failure", reason: "worker_lost" },
      loop: { status: "failure", reason: "timeout" },
    });
    for (const { attempt } of Object.values(harm.poison)) {
      expect(attempt).toBeLessThanOrEqual(4);
    }
    expect(harm.longestPauseMs).toBeLessThan(5_000);
  });
});

it("the other inputs of a batch succeed where one ends the worker", async () => {
  await using served = await serve("poison", { workers: 1 });
  const ids = await Promise.all([1, 2, -1, 3, 4].map((n) => served.submit("together", { n })));
  const ended = await Promise.all(ids.map((id) => served.ended("together", id)));
  expect(ended.map(({ status }) => status)).toEqual([
    ...["success", "success", "failure", "success", "success"],
  ]);
  expect(ended[2]).toMatchObject({ attempt: 4, failure: { reason: "worker_lost" } });
});
