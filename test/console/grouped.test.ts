import { expect, it } from "vitest";
import { type Groupable, grouped } from "../../src/console/app/pages/overview/grouped.ts";

/** Failed tasks of a deployment. */
const failed = (name: string, of: Partial<Groupable> = {}): Groupable => ({
  ...{ keys: [`tasks ${name}`], name, kind: "tasks", count: 2, isBad: false },
  ...{ cause: "predict: no readings", reason: "no readings", at: "2026-11-29T12:00:00Z" },
  ...of,
});
const rows = (seen: readonly Groupable[]) => grouped(seen, (first) => first);

it("what goes wrong for one reason is one row, with the worst state, the last time and the sum", () => {
  const other = failed("broken", { kind: "deployment" });
  const later = { isBad: true, count: 3, at: "2026-11-29T12:05:00Z" };
  expect(rows([failed("rain"), other, failed("wind", later)])).toEqual([
    {
      ...failed("rain, wind", later),
      keys: ["tasks rain", "tasks wind"],
      count: 5,
    },
    other,
  ]);
});

it("what has no reason, or another, has a row of its own", () => {
  const seen = [
    failed("rain", { reason: "" }),
    failed("wind", { reason: "" }),
    failed("snow", { reason: "no station" }),
    failed("fog"),
  ];
  expect(rows(seen)).toEqual(seen);
});

it("where it went wrong is left out of the cause of things that went wrong in several places", () => {
  const [row] = rows([failed("rain"), failed("wind", { cause: "forecast: no readings" })]);
  expect(row?.cause).toBe("no readings");
});

it("a row tells two names, each once, and how many more there are", () => {
  const namesOf = (...names: string[]) => rows(names.map((name) => failed(name)))[0]?.name;
  expect(namesOf("rain", "rain")).toBe("rain");
  expect(namesOf("rain", "wind", "snow")).toBe("rain, wind, snow");
  expect(namesOf("rain", "wind", "snow", "fog", "rain")).toBe("rain, wind and 2 more");
});
