import { describe, expect, it } from "vitest";
import { diffLines, folded } from "../../src/console/app/pages/deployments/line-diff.ts";

const SIGNS = { same: " ", removed: "-", added: "+" } as const;
const diff = (before: string, after: string): string[] =>
  diffLines(before, after).map(({ kind, text }) => `${SIGNS[kind]}${text}`);

describe("the difference of two texts", () => {
  it("has the lines of both, in their order", () => {
    expect(diff("a\nb\nc\n", "a\nB\nc\nd\n")).toEqual([" a", "-b", "+B", " c", "+d"]);
    expect(diff("", "a\nb")).toEqual(["+a", "+b"]);
    expect(diff("a\nb", "")).toEqual(["-a", "-b"]);
    expect(diff("a\n", "a\n")).toEqual([" a"]);
    expect(diff("a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc")).toHaveLength(9);
  });

  it("gives back both texts, whatever they are", () => {
    let seed = 7;
    const next = (below: number): number => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed % below;
    };
    for (let round = 0; round < 300; round += 1) {
      const text = () => Array.from({ length: next(30) }, () => "abc"[next(3)]).join("\n");
      const [before, after] = [text(), text()];
      const lines = diffLines(before, after);
      const side = (leftOut: string) =>
        lines.filter(({ kind }) => kind !== leftOut).map((line) => line.text);
      expect(side("added").join("\n")).toBe(before);
      expect(side("removed").join("\n")).toBe(after);
    }
  });

  it("numbers lines by the text that they are in", () => {
    expect(diffLines("a\nb", "b\nc").map(({ before, after }) => [before, after])).toEqual([
      [1, undefined],
      [2, 1],
      [undefined, 2],
    ]);
  });

  it("folds what is the same, but for three lines around a change", () => {
    const many = Array.from({ length: 20 }, (_, index) => `line ${index}`);
    const parts = folded(diffLines(many.join("\n"), many.with(10, "changed").join("\n")));
    expect(parts.map((part) => (part.kind === "fold" ? part.lines.length : part.kind))).toEqual([
      ...[7, "same", "same", "same", "removed", "added", "same", "same", "same", 6],
    ]);
  });

  it("takes bounded time for texts that have nothing in common", () => {
    const text = (word: string) =>
      Array.from({ length: 20_000 }, (_, index) => `${word} ${index}`).join("\n");
    const lines = diffLines(text("one"), text("two"));
    expect(lines).toHaveLength(40_000);
  });
});
