/** A short run of what `npm run faults` does for long. */
import { expect, it } from "vitest";
import { runFaults } from "./faults/rounds.ts";

it("loses no task, ends none twice and runs none at once in 20 rounds of faults", async () => {
  const figures = await runFaults({
    ...{ rounds: 20, seed: 21, silenceMs: 3_000, recoveryMs: 60_000 },
  });
  expect(figures).toMatchObject({ lost: [], endedTwice: [], overlaps: [] });
  expect(figures.acknowledged).toBeGreaterThan(20);
}, 150_000);
