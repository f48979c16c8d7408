import { describe, expect, it } from "vitest";
import { type Line, percentileNumbers, toldApart, wholeOf } from "../../src/console/app/ui/line.ts";
import { seconds } from "../../src/console/app/ui/quantity.ts";

const line = (name: string, values: readonly (number | null)[], dashes = 0): Line => {
  return { name, colour: "--low", values, dashes };
};

describe("the lines of a chart", () => {
  it("have the percentiles of the whole range as their numbers, not those of their steps", () => {
    const [p50, p95] = [0.02, undefined].map((whole) => ({ ...line("p", [0.5, 0.1]), whole }));
    expect(percentileNumbers(p50, p95, seconds)).toEqual([
      ["20 ms", "p50"],
      ["none", "p95", "--middle"],
    ]);
    expect([wholeOf({ whole: 2 }), wholeOf({}), wholeOf({ whole: "NaN" })]).toEqual([
      ...[2, 0, undefined],
    ]);
  });

  it("are dashed where they lie on others, each in another way, and say which they equal", () => {
    const drawn = toldApart([
      line("a", [1, null, 2]),
      line("b", [1, null, 2]),
      line("c", [1.5, null, 3]),
      line("d", [1, null, 2]),
      line("e", [1.5, null, 3], 1),
      line("f", [4, 5, 6], 1),
    ]);
    expect(drawn.map(({ dashes, sameAs }) => [dashes, sameAs])).toEqual([
      [0, undefined],
      [1, "a"],
      [0, undefined],
      [2, "a"],
      [1, "c"],
      [1, undefined],
    ]);
    // Equal parts of bars stand on one another.
    const bars = toldApart([line("a", [1, 2]), line("b", [1, 2])], true);
    expect(bars.map(({ dashes, sameAs }) => [dashes, sameAs])).toEqual([
      [0, undefined],
      [0, undefined],
    ]);
  });

  it("are dashed where they lie on others for a part of their length, but not along the axis", () => {
    const most = line("most", [0, 0, 0, 100, 100, 100]);
    const near = line("near", [0, 0, 0, 100.5, 100, 20]);
    const apart = line("apart", [0, 0, 0, 30, 40, 60]);
    const drawn = toldApart([most, near, apart]);
    expect(drawn.map(({ dashes, sameAs }) => [dashes, sameAs])).toEqual([
      [0, undefined],
      [1, undefined],
      [0, undefined],
    ]);
  });
});
