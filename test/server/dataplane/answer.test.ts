import fc from "fast-check";
import { expect, test } from "vitest";
import { utc } from "../../../src/server/dataplane/answer.ts";

/** What a Date can be (ECMA-262, section 21.4.1.1). */
const MAX_TIME_MS = 8.64e15;

test("a time is written as Date writes it, whichever was written before", () => {
  const moments = fc.integer({ min: -MAX_TIME_MS, max: MAX_TIME_MS });
  const recent = fc.integer({ min: 1.7e12, max: 1.7e12 + 600_000 });
  fc.assert(
    fc.property(fc.oneof(moments, recent), (timeMs) => {
      expect(utc(timeMs)).toBe(new Date(timeMs).toISOString());
    }),
    { numRuns: 2_000 },
  );
});
