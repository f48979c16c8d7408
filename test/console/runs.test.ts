import { expect, it } from "vitest";
import { lastOf, runsOf } from "../../src/console/app/api/runs.ts";

const runs = (text: string) => runsOf([...text], (item, before) => item === before);

it("items that are alike and follow each other are a run", () => {
  expect(runs("aabaaa").map((run) => run.join(""))).toEqual(["aa", "b", "aaa"]);
  expect(runs("")).toEqual([]);
});

it("an item is compared with the one before it, which need not be the first of its run", () => {
  const steps = runsOf([1, 2, 3, 5, 6], (item, before) => item === before + 1);
  expect(steps).toEqual([
    [1, 2, 3],
    [5, 6],
  ]);
  expect(steps.map(lastOf)).toEqual([3, 6]);
});

it("an item that is undefined is one like any other", () => {
  expect(runsOf([undefined, undefined, 1], (item, before) => item === before)).toHaveLength(2);
});
