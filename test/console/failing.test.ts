import { expect, it } from "vitest";
import { endedOf, isFailing } from "../../src/console/app/api/failing.ts";

it("a deployment fails whose calls or tasks of the last hour failed in one of twenty or more", () => {
  expect(isFailing({ total: { failed: 4 } })).toBe(true);
  expect(isFailing({ total: { failed: 1, succeeded: 18, cancelled: 1 } })).toBe(true);
  expect(isFailing({ calls: 100, failedCalls: 5, total: { succeeded: 3 } })).toBe(true);
});

it("a deployment does not fail while less than that did, or nothing was called", () => {
  expect(isFailing({})).toBe(false);
  expect(isFailing({ calls: 100, failedCalls: 4, total: { failed: 1, succeeded: 20 } })).toBe(
    false,
  );
});

it("tasks that ended are those of every final state", () => {
  expect(endedOf({ succeeded: 3, failed: 2, cancelled: 1, running: 9 })).toBe(6);
});
