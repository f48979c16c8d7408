import { expect, it } from "vitest";
import { toProblem } from "../../../src/errors.ts";
import { KeyLimits } from "../../../src/queue/calls/key-limits.ts";

/** Limits whose clock a test sets, with the calls that are under way. */
function limited(byKey: object, capacity?: number) {
  const clock = { nowMs: 0 };
  const limits = new KeyLimits(capacity, () => clock.nowMs);
  const enter = (key?: string, name = "ask") => limits.enter({ name, byKey }, key);
  const refusal = (key?: string) => {
    try {
      enter(key)?.[Symbol.dispose]();
      return undefined;
    } catch (err) {
      const { reason, retryAfterMs, metadata } = toProblem(err);
      return [reason, retryAfterMs, metadata.get("ratelimit"), metadata.get("ratelimit-policy")];
    }
  };
  return { clock, limits, enter, refusal };
}

it("lets as many calls of a key be under way as allowed, of each endpoint", () => {
  const { enter, refusal, limits } = limited({ concurrency: 2 });
  const [first] = [enter("ada"), enter("ada")];
  expect(refusal("ada")).toEqual(["KEY_LIMITED", 1_000, null, null]);
  expect(refusal("bob")).toBeUndefined();
  expect(() => enter("ada", "other")).not.toThrow();
  first?.[Symbol.dispose]();
  expect(refusal("ada")).toBeUndefined();
  // What has no call is not kept.
  expect(limits.size).toBe(2);
});

it("bounds the rate of a key by a token bucket, and says when there is more", () => {
  const { clock, refusal, limits } = limited({ rate: { count: 2, periodMs: 60_000 } });
  expect([refusal("ada"), refusal("ada")]).toEqual([undefined, undefined]);
  expect(refusal("ada")).toEqual(["KEY_LIMITED", 30_000, '"key";r=0;t=30', '"key";q=2;w=60']);
  expect(refusal()).toBeUndefined();
  clock.nowMs = 30_000;
  expect(refusal("ada")).toBeUndefined();
  expect(refusal("ada")?.[0]).toBe("KEY_LIMITED");
  expect(limits.size).toBe(2);
});

it("tells what a key has left of its rate, and when there is more", () => {
  const { clock, limits } = limited({});
  const byKey = { rate: { count: 3, periodMs: 60_000 } };
  const told: string[] = [];
  const enter = (of: object) =>
    limits.enter({ name: "ask", byKey: of }, "ada", ({ left, quota, windowMs, resetMs }) =>
      told.push(`${left} of ${quota} in ${windowMs} ms, more in ${resetMs} ms`),
    );
  enter(byKey);
  clock.nowMs = 5_000;
  enter(byKey);
  enter(byKey);
  expect(() => enter(byKey)).toThrow("may make 3 calls");
  enter({ concurrency: 1 });
  expect(told).toEqual([
    "2 of 3 in 60000 ms, more in 20000 ms",
    "1 of 3 in 60000 ms, more in 15000 ms",
    "0 of 3 in 60000 ms, more in 15000 ms",
  ]);
});

it("holds a key to the rate of the revision that its call is of", () => {
  const { limits, refusal } = limited({ rate: { count: 1, periodMs: 86_400_000 } });
  expect([refusal("ada"), refusal("ada")?.[0]]).toEqual([undefined, "KEY_LIMITED"]);
  const raised = { name: "ask", byKey: { rate: { count: 2, periodMs: 1_000 } } };
  const take = () => limits.enter(raised, "ada")?.[Symbol.dispose]();
  expect([take(), take()]).toEqual([undefined, undefined]);
  expect(take).toThrow("may make 2 calls of ask in 1 s");
  expect(refusal("ada")?.[0]).toBe("KEY_LIMITED");
});

it("gives no start back for a call that is refused because too many are under way", () => {
  const { enter, refusal } = limited({ concurrency: 1, rate: { count: 2, periodMs: 1_000 } });
  const call = enter("ada");
  expect(refusal("ada")).toEqual(["KEY_LIMITED", 1_000, null, null]);
  call?.[Symbol.dispose]();
  expect(refusal("ada")).toBeUndefined();
});

it("forgets the keys that came longest ago beyond its bound, however many come", () => {
  const { limits, enter, refusal } = limited({ rate: { count: 1, periodMs: 86_400_000 } }, 1_000);
  for (let key = 0; key < 100_000; key++) {
    enter(`key-${key}`)?.[Symbol.dispose]();
  }
  expect(limits.size).toBe(1_000);
  expect(refusal("key-99999")?.[0]).toBe("KEY_LIMITED");
  expect(refusal("key-0")).toBeUndefined();
});

it("keeps nothing of an endpoint without limits", () => {
  const limits = new KeyLimits();
  expect(limits.enter({ name: "ask" }, "ada")).toBeUndefined();
  expect(limits.size).toBe(0);
});
