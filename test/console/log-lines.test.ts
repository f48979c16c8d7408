import { describe, expect, it } from "vitest";
import {
  barsOf,
  filtered,
  folded,
  jsonLinesOf,
  kept,
  MAX_LINES,
  partsOf,
  placesOf,
  readLine,
  type ShownLine,
  textOf,
} from "../../src/console/app/pages/deployments/log-lines.ts";
import {
  readLogSearch,
  type ShownLevel,
} from "../../src/console/app/pages/deployments/log-search.ts";
import { threadTimer } from "../thread-time.ts";

/** A line, so many seconds after 1970. */
const line = (
  sequence: number,
  text: string,
  level: ShownLevel = "info",
  seconds = sequence,
): ShownLine =>
  readLine({
    sequence: String(sequence),
    time: new Date(seconds * 1_000).toISOString(),
    level,
    text,
    worker: "node/w1",
    ...(level === "error" && { taskId: "t1" }),
  });

const LINES = [
  line(1, "began"),
  line(2, "Slow answer", "warn"),
  line(3, "refused", "error"),
  line(4, "slow again"),
];

const ALL = { search: "", task: "", levels: [], range: {} } as const;
const shown = (filter: Partial<Parameters<typeof filtered>[1]>) => {
  const { lines, counts } = filtered(LINES, { ...ALL, ...filter });
  return [lines.map(({ sequence }) => sequence), counts];
};

describe("lines of a log", () => {
  it("are filtered, and counted by level as if all levels were wanted", () => {
    expect(shown({})).toEqual([[1, 2, 3, 4], { error: 1, warn: 1, info: 2 }]);
    expect(shown({ search: "SLOW", levels: ["warn"] })).toEqual([
      [2],
      { error: 0, warn: 1, info: 1 },
    ]);
    expect(shown({ task: "t1" })).toEqual([[3], { error: 1, warn: 0, info: 0 }]);
    expect(shown({ range: { fromMs: 2_000, toMs: 4_000 } })[0]).toEqual([2, 3]);
    expect(shown({ range: { fromMs: 4_000 } })[0]).toEqual([4]);
  });

  it("are kept up to a number of them and of their characters, the newest", () => {
    const many = Array.from({ length: MAX_LINES + 5 }, (_, index) => line(index + 1, "x"));
    expect(kept(many)).toHaveLength(MAX_LINES);
    expect(kept(many).at(-1)?.sequence).toBe(MAX_LINES + 5);
    const long = "x".repeat(1024 * 1024);
    expect(kept(Array.from({ length: 20 }, (_, index) => line(index, long)))).toHaveLength(16);
    expect(kept(LINES)).toBe(LINES);
  });

  it("have a time that can be shown, a level that is known, and no codes of terminals", () => {
    expect(
      readLine({ sequence: "7", level: "odd", text: "\u001b[1;32mgood\u001b[0m" }),
    ).toMatchObject({ sequence: 7, level: "info", text: "good" });
  });

  it("are counted over time in bars of one length, at most so many", () => {
    const bars = barsOf(LINES, { fromMs: 1_000, toMs: 5_000 }, 10);
    expect(bars.map(({ counts }) => counts.error + counts.warn + counts.info)).toEqual([
      1, 1, 1, 1,
    ]);
    expect(bars[2]).toEqual({ fromMs: 3_000, toMs: 4_000, counts: { error: 1, warn: 0, info: 0 } });
    for (const days of [1, 7, 40, 20_000]) {
      const toMs = days * 86_400_000 + 17;
      const all = barsOf(LINES, { fromMs: 17, toMs }, 30);
      expect(all.length).toBeLessThanOrEqual(31);
      expect(all.at(-1)?.toMs).toBeGreaterThanOrEqual(toMs);
      expect(all[0]?.counts).toEqual({ error: 1, warn: 1, info: 2 });
    }
    expect(barsOf([], { fromMs: 5_000, toMs: 5_000 }, 30)).toHaveLength(1);
  });

  it("are folded to one line, which has what was searched for", () => {
    expect(folded("one", "")).toEqual({ text: "one", more: "" });
    expect(folded("\n one\ntwo\nthree\n", "")).toEqual({ text: "one", more: "+2 lines" });
    expect(folded("one\ntwo\nthree", "TWO")).toEqual({ text: "…two", more: "+2 lines" });
    const long = `${"x".repeat(5_000)}here${"y".repeat(5_000)}`;
    expect(folded(long, "")).toEqual({ text: "x".repeat(600), more: "10004 characters" });
    const found = folded(long, "HERE");
    expect(found.text).toMatch(/^…x{40}herey+$/);
    expect(found.text.length).toBeLessThan(700);
    expect(folded("", "")).toEqual({ text: "", more: "" });
  });

  it("begin with what they say, apart from the endpoint that says it", () => {
    const kinds = new Map([["predict", "ENDPOINT_KIND_TASK" as const]]);
    expect(partsOf("predict: done: 3", kinds)).toEqual({ of: "predict", rest: "done: 3" });
    expect(partsOf("predict failed: Error: no\n at x", kinds)).toEqual({
      ...{ of: "predict", rest: "Error: no\n at x" },
    });
    for (const text of ["the number of workers changes", "a worker ended: it was killed", ": x"]) {
      expect(partsOf(text, kinds)).toEqual({ of: "", rest: text });
    }
  });

  it("are folded at once, however long they are", () => {
    const long = "x y ".repeat(250_000);
    const spentMs = threadTimer();
    expect(folded(long, "nothing has this").text).toHaveLength(600);
    expect(spentMs()).toBeLessThan(200);
  });

  it("have places that are marked, a few", () => {
    expect(placesOf("aXbx", "x")).toEqual([1, 3]);
    expect(placesOf("x".repeat(100), "x")).toHaveLength(20);
    expect(placesOf("İx", "x")).toEqual([]);
    expect(placesOf("x", "")).toEqual([]);
  });

  it("are saved as text, and as JSON one a line", () => {
    expect(textOf(LINES.slice(2, 3))).toBe("1970-01-01T00:00:03.000Z error node/w1 t1 refused\n");
    const [first, second, end] = jsonLinesOf(LINES.slice(2)).split("\n");
    expect(JSON.parse(first ?? "")).toEqual(LINES[2]?.sent);
    expect(JSON.parse(second ?? "")).toEqual(LINES[3]?.sent);
    expect(end).toBe("");
  });
});

describe("the filter of a log in the address", () => {
  it.each([
    [{ search: "x", level: "error,warn", task: "t", range: "1h" }, "the same"],
    [{ from: 1_000, to: 2_000 }, "the same"],
    [
      { from: 1_000, to: 2_000, range: "1h" },
      { from: 1_000, to: 2_000 },
    ],
    [{ level: "error,warn,info" }, {}],
    [{ level: "warn,odd,error" }, { level: "error,warn" }],
    [{ from: 2_000, to: 1_000 }, {}],
    [{ from: "x", to: 1e300 }, {}],
    [{ range: "constructor", search: "", level: 7 }, {}],
    [{ search: "x".repeat(999) }, { search: "x".repeat(200) }],
  ])("of %j", (given, wanted) => {
    expect(readLogSearch(given)).toEqual(wanted === "the same" ? given : wanted);
  });
});
