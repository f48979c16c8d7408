import { describe, expect, it } from "vitest";
import { toldApart, usual } from "../../src/console/app/ui/line.ts";
import { count } from "../../src/console/app/ui/quantity.ts";

describe("the lines of a chart", () => {
  it("have as usual value the one in the middle of those that are known", () => {
    expect(usual([null, 9, 1, null, 2], count)).toBe("2");
    expect(usual([null], count)).toBe("none");
  });

  it("are dashed where they lie exactly on others, each in another way", () => {
    const line = (values: readonly (number | null)[], dashes = 0) => {
      return { name: "p50", colour: "--low", values, dashes };
    };
    const drawn = toldApart([
      line([1, null, 2]),
      line([1, null, 2]),
      line([1, null, 3]),
      line([1, null, 2]),
      line([1, null, 3], 1),
      line([4, 5, 6], 1),
    ]);
    expect(drawn.map(({ dashes }) => dashes)).toEqual([0, 1, 0, 2, 1, 1]);
    // Equal parts of bars stand on one another.
    const bars = toldApart([line([1, 2]), line([1, 2])], true);
    expect(bars.map(({ dashes }) => dashes)).toEqual([0, 0]);
  });
});
