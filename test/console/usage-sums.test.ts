import { expect, it } from "vitest";
import type { GetUsageResponseJson } from "../../gen/tessera/v1/usage_pb.js";
import { readUsageSearch } from "../../src/console/app/pages/usage/usage-search.ts";
import {
  csvOf,
  daysOf,
  linesOf,
  unitsOf,
  usedBy,
} from "../../src/console/app/pages/usage/usage-sums.ts";

const ANSWER: GetUsageResponseJson = {
  ...{ startDay: "2026-02-27", endDay: "2026-03-01" },
  sums: [
    { day: "2026-02-27", token: { id: "1", name: "batch" }, tasks: "2", runSeconds: 1.5 },
    { day: "2026-02-27", token: { id: "", name: "" }, calls: "7", runSeconds: 4 },
    { day: "2026-03-01", token: { id: "1", name: "batch" }, runSeconds: 5, units: { pages: 0.5 } },
    {
      day: "2026-03-01",
      token: { id: "2", name: "" },
      calls: "1",
      units: { pages: 1, letters: 9 },
    },
  ],
};

it("who used something has a line over all days, most of it first", () => {
  const days = daysOf(ANSWER);
  expect(days).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
  const used = usedBy(ANSWER, "token", "run_seconds");
  expect(used.map(({ name }) => name)).toEqual(["batch", "without a token", "2"]);
  const lines = linesOf(used, days, "run_seconds");
  expect(lines).toMatchObject([
    { name: "batch", values: [1.5, 0, 5] },
    { name: "without a token", values: [4, 0, 0] },
  ]);
  expect(usedBy(ANSWER, "token", "pages").map(({ name }) => name)).toEqual([
    ...["2", "batch", "without a token"],
  ]);
});

it("is a file with a column for each unit", () => {
  expect(unitsOf(ANSWER)).toEqual(["letters", "pages"]);
  expect(csvOf(ANSWER, "token").split("\r\n")).toEqual([
    "day,token,token_id,calls,tasks,run_seconds,gpu_seconds,bytes_in,bytes_out,letters,pages",
    '"2026-02-27","batch","1",0,2,1.5,0,0,0,0,0',
    '"2026-02-27","","",7,0,4,0,0,0,0,0',
    '"2026-03-01","batch","1",0,0,5,0,0,0,0,0.5',
    '"2026-03-01","","2",1,0,0,0,0,0,9,1',
    "",
  ]);
});

it("a unit may be called like what every object inherits", () => {
  const units = Object.fromEntries([["constructor", 3]]);
  const sums = [
    { day: "2026-03-01", units: {} },
    { day: "2026-03-01", units },
  ];
  const rows = csvOf({ sums }, "deployment").split("\r\n");
  expect(rows.map((row) => row.split(",").at(-1))).toEqual(["constructor", "0", "3", ""]);
});

it("an address says what is shown, and nothing that there is not", () => {
  const search = { by: "token", of: "pages", days: 90 };
  expect(readUsageSearch({ ...search, days: "90" })).toEqual(search);
  expect(readUsageSearch({ by: "year", of: 3, days: 8 })).toEqual({});
});
