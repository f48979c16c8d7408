import { describe, expect, it } from "vitest";
import { parseExactly } from "../../src/collections/exact-json.ts";
import {
  openAtFirst,
  rowsOf,
  tablesIn,
  toldClosed,
} from "../../src/console/app/pages/tasks/json-rows.ts";

const shown = (json: string) => {
  const value = parseExactly(json);
  return rowsOf(value, openAtFirst(value)).map(({ name, level, isOpen }) => [name, level, isOpen]);
};

describe("the tree of a JSON value", () => {
  it("has a row for each member, opened as far as it is small", () => {
    expect(shown('{"a":1,"b":{"c":[],"d":null}}')).toEqual([
      ["a", 1, undefined],
      ["b", 1, true],
      ["c", 2, undefined],
      ["d", 2, undefined],
    ]);
    const wide = JSON.stringify({ few: [1], many: Array.from({ length: 50 }, (_, at) => at) });
    expect(shown(wide)).toEqual([
      ["few", 1, false],
      ["many", 1, false],
    ]);
  });

  it("shows a long list in parts, however long it is", () => {
    const list = Array.from({ length: 1_000_000 }, (_, at) => at);
    const rows = rowsOf(list, new Map([["", 100]]));
    expect(rows).toHaveLength(101);
    expect(rows.at(-1)?.hidden).toBe(999_900);
    expect(rowsOf(list, new Map([["", 200]])).at(-2)?.name).toBe("199");
  });

  it("tells rows apart whose names look like a path, or like those of lists", () => {
    const value = { "a/b": 1, a: { b: 2, "~more": 3 }, "": { "": 4 }, "a~1b": 5, "0": [6] };
    const open = new Map(["", "/a", "/", "/0"].map((path) => [path, 1] as const));
    const paths = rowsOf(value, new Map([...open, ["", 9]])).map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
  });

  it("keeps numbers as they were written, and opens long strings", () => {
    const value = parseExactly(`{"big":9007199254740993,"long":"${"x".repeat(300)}"}`);
    const [big, long] = rowsOf(value, openAtFirst(value));
    expect(JSON.stringify(big?.value)).toBe("9007199254740993");
    expect([big?.isOpen, long?.isOpen]).toEqual([undefined, false]);
  });

  it("of what is no list and no object is one row", () => {
    expect(shown('"text"')).toEqual([[undefined, 0, undefined]]);
  });
});

it.each([
  ["[]", "[]"],
  ["[1,2]", "2 items"],
  ["{}", "{}"],
  ['{"id":7,"score":0.50,"ok":true}', "{ id: 7, score: 0.50, ok: true }"],
  ['{"a":{"b":1},"c":{},"d":[1]}', "{ a: {…}, c: {}, d: 1 item }"],
  ['{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "{ a: 1, b: 2, c: 3, d: 4, e: 5, … }"],
  [
    JSON.stringify({ one: "x".repeat(99), two: "y".repeat(99), three: 3 }),
    `{ one: "${"x".repeat(24)}…", … }`,
  ],
])("%s that is closed is told as %s", (json, told) => {
  expect(toldClosed(parseExactly(json) as object)).toBe(told);
});

describe("the tables of a JSON value", () => {
  it("are itself or its members that are lists of objects, with the columns of all rows", () => {
    const rows = [{ id: 1 }, { id: 2, name: "b" }];
    expect(tablesIn(rows)).toEqual([{ name: undefined, columns: ["id", "name"], rows }]);
    expect(tablesIn({ rows, others: [1, 2] }).map(({ name }) => name)).toEqual(["rows"]);
  });

  it("are none of lists of other things, of one row, and of too many columns", () => {
    const wide = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`c${at}`, at]));
    for (const value of [[1, 2], [{ id: 1 }], [[1], [2]], [{}, {}], [wide, wide], "x", null]) {
      expect(tablesIn(value), JSON.stringify(value)).toEqual([]);
    }
  });
});
