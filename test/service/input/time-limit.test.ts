import { expect, it } from "vitest";
import { withinTime } from "../../../src/service/input/time-limit.ts";
import { threadTimer } from "../../thread-time.ts";

it("does not count time in which the thread does not work", () => {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let attempts = 0;
  const found = withinTime(10, () => {
    attempts += 1;
    if (attempts < 4) {
      Atomics.wait(never, 0, 0);
    }
    return "fits";
  });
  expect(found).toEqual({ result: "fits" });
  expect(attempts).toBe(4);
});

it("gives work up that gets no processor time in ten attempts", () => {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let attempts = 0;
  const found = withinTime(50, () => {
    attempts += 1;
    Atomics.wait(never, 0, 0);
  });
  expect(found).toBeUndefined();
  expect(attempts).toBe(10);
});

it("terminates work that takes too long, and tells what it throws", () => {
  const spentMs = threadTimer();
  expect(
    withinTime(10, () => {
      for (;;) {}
    }),
  ).toBeUndefined();
  expect(spentMs()).toBeLessThan(100);
  expect(() =>
    withinTime(10, () => {
      throw new Error("of the work");
    }),
  ).toThrow("of the work");
  expect(withinTime(10, () => undefined)).toEqual({ result: undefined });
});
