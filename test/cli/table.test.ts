import { describe, expect, it } from "vitest";
import { table } from "../../src/cli/table.ts";

const EMPTY = { empty: "No people" };

describe("a table", () => {
  it("aligns columns under their titles, without spaces at the ends of lines", () => {
    const rows = [
      ["ada@example.com", "admin"],
      ["b", ""],
    ];
    expect(table(["NAME", "ROLE"], rows, EMPTY).text()).toBe(
      "NAME             ROLE\nada@example.com  admin\nb                -",
    );
  });

  it("counts what terminals show in two cells as two", () => {
    const rows = [
      ["東京", "1"],
      ["🎉", "2"],
      ["abcd", "3"],
    ];
    expect(table(["NAME", "X"], rows, EMPTY).text()).toBe("NAME  X\n東京  1\n🎉    2\nabcd  3");
  });

  it("cannot be made to steer the terminal", () => {
    const row = ["a\u001b[31m\u001b]0;title\u0007b\nc\u202ed"];
    const text = table(["NAME"], [row], EMPTY).text();
    expect(text).toMatch(/^NAME\n[^\n]+$/);
    for (const steering of ["\u001b", "\u0007", "\u202e"]) {
      expect(text).not.toContain(steering);
    }
  });

  it("shows nothing in a column of notes where there is none", () => {
    expect(
      table(
        ["NAME", ""],
        [
          ["a", ""],
          ["b", "new"],
        ],
        EMPTY,
      ).text(),
    ).toBe("NAME\na\nb     new");
  });
});

describe("a table in a narrow terminal", () => {
  const long = "a text that goes on and on and on, for longer than any terminal is wide";
  const wide = table(
    ["NAME", "KIND", "WHEN", "TEXT"],
    [["ada", "personal", "2027-01-31 08:30Z", long]],
    { empty: "", drop: ["WHEN", "KIND"] },
  );
  const lengths = (text: string) => text.split("\n").map((line) => line.length);

  it("cuts the longest text first", () => {
    expect(wide.text(80)).toBe(
      "NAME  KIND      WHEN               TEXT\n" +
        "ada   personal  2027-01-31 08:30Z  a text that goes on and on and on, for longe…",
    );
    expect(Math.max(...lengths(wide.text(80)))).toBe(80);
  });

  it("drops columns in their order where cutting is not enough", () => {
    expect(wide.text(50)).not.toContain("WHEN");
    expect(wide.text(50)).toContain("personal");
    expect(wide.text(30)).not.toContain("KIND");
    expect(Math.max(...lengths(wide.text(30)))).toBe(30);
  });

  it("never cuts what names the row, nor an id", () => {
    const id = "01234567-89ab-cdef-0123-456789abcdef";
    const rows = [[id, id, "text of some length"]];
    const text = table(["TASK", "ID", "TEXT"], rows, EMPTY).text(40);
    expect(text.split(id)).toHaveLength(3);
  });

  it("cuts between characters, not within one", () => {
    const text = table(["N", "TEXT"], [["1", "東京東京東京東京"]], EMPTY).text(10);
    expect(text).toBe("N  TEXT\n1  東京東…");
  });

  it("is whole without a width, for programs", () => {
    expect(wide.text()).toContain(long);
  });
});
