import { expect, it } from "vitest";
import { SharedBound } from "../../src/collections/shared-bound.ts";

it("one has three quarters at most, and others what is left", () => {
  const bound = new SharedBound(8);
  expect(Array.from({ length: 8 }, () => bound.take("one"))).toEqual([
    ...Array(6).fill(true),
    ...Array(2).fill(false),
  ]);
  expect([bound.take("other"), bound.take("third"), bound.take("other")]).toEqual([
    true,
    true,
    false,
  ]);
  bound.give("one");
  expect([bound.take("one"), bound.taken, bound.takenBy("one")]).toEqual([true, 8, 6]);
});

it("what was refused has taken nothing", () => {
  const bound = new SharedBound(100);
  expect([bound.take("one", 76), bound.take("one", 75), bound.take("other", 26)]).toEqual([
    false,
    true,
    false,
  ]);
  bound.give("one", 75);
  expect([bound.taken, bound.takenBy("one")]).toEqual([0, 0]);
});

it("who finds no room learns whose share it is, and not what others have", () => {
  const bound = new SharedBound(8);
  bound.take("one", 6);
  expect(bound.refusal("one")).toBe(
    "the organization has its share: at most 6 of the 8 are one organization's",
  );
  bound.take("other", 2);
  expect(bound.refusal("third")).toBe("all are taken: at most 6 of the 8 are one organization's");
});
