/** Rows of a log: what is folded, what unfolds, and what that costs. */
import { describe, expect, it } from "vitest";
import {
  isRepeat,
  isRepeatAtOnce,
  readLine,
  type ShownLine,
} from "../../src/console/app/pages/deployments/log-lines.ts";
import { rowsOf } from "../../src/console/app/ui/log-rows.ts";
import { threadTimer } from "../thread-time.ts";

const NONE = new Set<number>();

const line = (sequence: number, text: string, level = "info"): ShownLine =>
  readLine({ sequence: String(sequence), level, text });

/** The numbers of the lines of each row, with its count. */
const told = (
  lines: readonly ShownLine[],
  unfolded: ReadonlySet<number> = NONE,
  isLike = isRepeatAtOnce,
) =>
  rowsOf(lines, isLike, unfolded).map(({ lines: of, count, isUnfolded }) => {
    const numbers = of.map(({ sequence }) => sequence).join(" ");
    return `${numbers}${count > 1 ? ` × ${count}` : ""}${isUnfolded ? " unfolded" : ""}`;
  });

const LINES = [line(1, "a"), line(2, "b"), line(3, "b"), line(4, "b"), line(5, "a")];

describe("the rows of a log", () => {
  it("are one for equal lines that follow each other, of one level", () => {
    expect(told(LINES)).toEqual(["1", "2 3 4 × 3", "5"]);
    expect(told([line(1, "a"), line(2, "a", "error"), line(3, "predict: a")])).toEqual([
      ...["1", "2", "3"],
    ]);
  });

  it("are the lines themselves of what is unfolded, also once it has grown or lost its beginning", () => {
    const unfolded = new Set([2, 4]);
    expect(told(LINES, unfolded)).toEqual([
      ...["1", "2 × 3 unfolded", "3 unfolded", "4 unfolded", "5"],
    ]);
    expect(told([...LINES.slice(2, 4), line(5, "b")], unfolded)).toEqual([
      ...["3 × 3 unfolded", "4 unfolded", "5 unfolded"],
    ]);
    expect(told(LINES, new Set([1, 5]))).toEqual(["1", "2 3 4 × 3", "5"]);
  });

  it("do not reach over lines that are gone, but over those that a filter leaves out", () => {
    const some = [line(1, "a"), line(7, "a")];
    expect(told(some)).toEqual(["1", "7"]);
    expect(told(some, NONE, isRepeat)).toEqual(["1 7 × 2"]);
  });

  it.each([
    ["of one text", () => "x".repeat(100)],
    ["that differ", String],
  ])("are made of 100,000 lines %s at once", (_, textOf) => {
    const lines = Array.from({ length: 100_000 }, (_, index) => line(index, textOf(index)));
    const spentMs = threadTimer();
    rowsOf(lines, isRepeatAtOnce, new Set([50_000]));
    expect(spentMs()).toBeLessThan(500);
  });
});
