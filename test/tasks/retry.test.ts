import { describe, expect, test } from "vitest";
import { retryAt } from "../../src/tasks/retry.ts";

const NOW_MS = 1_750_000_000_000;
const HOUR_MS = 3_600_000;

function waitMs(
  failures: number,
  policy: { max: number; backoffMs: number },
  { code = "internal", random = 0 } = {},
) {
  const at = retryAt({ failures, code, policy, nowMs: NOW_MS, random });
  return at === undefined ? undefined : at - NOW_MS;
}

describe("retrying a failed attempt", () => {
  test("does not happen without retries", () => {
    expect(waitMs(1, { max: 0, backoffMs: 1_000 })).toBeUndefined();
  });

  test("happens as often as the policy says", () => {
    const policy = { max: 3, backoffMs: 100 };
    expect([1, 2, 3, 4, 5].map((attempt) => waitMs(attempt, policy) !== undefined)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test("waits twice as long each time", () => {
    const policy = { max: 10, backoffMs: 500 };
    expect([1, 2, 3, 4].map((attempt) => waitMs(attempt, policy))).toEqual([
      500, 1_000, 2_000, 4_000,
    ]);
  });

  test("waits up to a quarter longer, by chance", () => {
    const policy = { max: 10, backoffMs: 1_000 };
    const waits = [0, 0.5, 1].map((random) => waitMs(2, policy, { random }));
    expect(waits).toEqual([2_000, 2_250, 2_500]);
  });

  test("waits an hour at most, however many attempts there were", () => {
    const policy = { max: 5_000, backoffMs: 1_000 };
    for (const attempt of [13, 50, 1_024, 5_000]) {
      expect(waitMs(attempt, policy, { random: 1 })).toBe(HOUR_MS);
    }
    expect(waitMs(1, { max: 1, backoffMs: 2 * HOUR_MS })).toBe(HOUR_MS);
  });

  test("happens at once without a backoff", () => {
    expect(waitMs(1, { max: 5, backoffMs: 0 })).toBe(0);
    expect(waitMs(5, { max: 5, backoffMs: 0 })).toBe(0);
  });

  test("does not happen when the same arguments cannot succeed", () => {
    const policy = { max: 3, backoffMs: 100 };
    for (const code of ["invalid_argument", "unimplemented", "permission_denied"]) {
      expect(waitMs(1, policy, { code })).toBeUndefined();
    }
    for (const code of ["internal", "unavailable", "deadline_exceeded", "resource_exhausted"]) {
      expect(waitMs(1, policy, { code })).toBe(100);
    }
  });
});
