import { describe, expect, it } from "vitest";
import { FailureLimiter, type FailureLimiterOptions } from "../../src/auth/failures.ts";
import { toProblem } from "../../src/errors.ts";

function limiter(options: FailureLimiterOptions = {}) {
  let timeMs = 0;
  const failures = new FailureLimiter({
    burst: 3,
    refillMs: 2_000,
    ...options,
    monotonicMs: () => timeMs,
  });
  const pass = (ms: number): void => {
    timeMs += ms;
  };
  return { failures, pass };
}

function refusal(action: () => unknown) {
  try {
    action();
  } catch (err) {
    return toProblem(err);
  }
  return undefined;
}

const isFalse = (result: boolean): boolean => !result;

describe("failed attempts", () => {
  it("are let happen so often, then refused with the time to wait, then let happen one by one", () => {
    const { failures, pass } = limiter();
    for (let index = 0; index < 3; index += 1) {
      failures.check("192.0.2.1");
      failures.fail("192.0.2.1");
    }
    expect(refusal(() => failures.check("192.0.2.1"))).toMatchObject({
      reason: "RATE_LIMITED",
      retryAfterMs: 2_000,
    });
    pass(1_999);
    expect(refusal(() => failures.check("192.0.2.1"))).toBeDefined();
    pass(1);
    failures.check("192.0.2.1");
    failures.fail("192.0.2.1");
    expect(refusal(() => failures.check("192.0.2.1"))).toBeDefined();
    pass(60_000);
    failures.check("192.0.2.1");
  });

  it("of one address are not held against another, but those of an IPv6 network are", () => {
    const { failures } = limiter({ burst: 1 });
    failures.fail("192.0.2.1");
    failures.fail("2001:db8::1");
    failures.check("192.0.2.2");
    failures.check("2001:db8:0:1::1");
    expect(refusal(() => failures.check("::ffff:192.0.2.1"))).toBeDefined();
    expect(refusal(() => failures.check("2001:db8::2"))).toBeDefined();
  });

  it("are remembered of so many addresses and no more", () => {
    const { failures } = limiter({ burst: 1, capacity: 100 });
    for (let index = 0; index < 1_000; index += 1) {
      failures.fail(`10.0.${index >> 8}.${index & 255}`);
    }
    expect(failures.size).toBe(100);
    failures.check("10.0.0.0");
    expect(refusal(() => failures.check("10.0.3.231"))).toBeDefined();
  });
});

describe("an attempt", () => {
  it("counts when it fails, and leaves nothing behind when it succeeds or throws", async () => {
    const { failures } = limiter();
    await failures.attempt("192.0.2.1", async () => true, isFalse);
    const broken = failures.attempt("192.0.2.1", () => Promise.reject(new Error("away")), isFalse);
    await expect(broken).rejects.toThrow("away");
    expect(failures.size).toBe(0);
    for (let index = 0; index < 3; index += 1) {
      await failures.attempt("192.0.2.1", async () => false, isFalse);
    }
    expect(refusal(() => failures.attempt("192.0.2.1", async () => true, isFalse))).toBeDefined();
  });

  it("is refused while so many of the address are under way, and not after", async () => {
    const { failures } = limiter({ underWay: 2 });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const attempts = [0, 1].map(() => failures.attempt("192.0.2.1", () => promise, isFalse));
    expect(refusal(() => failures.attempt("192.0.2.1", () => promise, isFalse))).toMatchObject({
      reason: "RATE_LIMITED",
      retryAfterMs: 1_000,
    });
    await failures.attempt("192.0.2.2", async () => true, isFalse);
    resolve(true);
    await Promise.all(attempts);
    await failures.attempt("192.0.2.1", async () => true, isFalse);
  });
});
