import { parser } from "@prometheus-io/lezer-promql";
import { describe, expect, it } from "vitest";
import { SelectorError } from "../../../src/metrics/selector/error.ts";
import { parseSelectors } from "../../../src/metrics/selector/list.ts";
import { parseSelector } from "../../../src/metrics/selector/parse.ts";
import { writeSelector } from "../../../src/metrics/upstream.ts";
import { threadTimer } from "../../thread-time.ts";
import { TABLE } from "./table.ts";

function errorOf(selector: string): string | undefined {
  try {
    parseSelector(selector);
    return undefined;
  } catch (err) {
    expect(err).toBeInstanceOf(SelectorError);
    return (err as Error).message;
  }
}

/** Where an error is, as `line:column`. */
const place = (message: string | undefined): string | undefined =>
  message === undefined ? undefined : /^\d+:\d+/.exec(message)?.[0];

describe("a selector", () => {
  it("is taken from a table of more than 500", () => {
    expect(TABLE.length).toBeGreaterThan(500);
    expect(TABLE.filter(({ prometheus3 }) => !prometheus3).length).toBeGreaterThan(200);
    expect(new Set(TABLE.map(({ selector }) => selector)).size).toBe(TABLE.length);
  });

  it("is accepted or refused as Prometheus 3 does", () => {
    const different = TABLE.filter(
      ({ selector, prometheus3 }) => (errorOf(selector) === undefined) !== prometheus3,
    );
    expect(different).toEqual([]);
  });

  it("is refused with the place that Prometheus names", () => {
    const different = TABLE.filter(
      ({ selector, error }) => place(errorOf(selector)) !== place(error),
    ).map(({ selector }) => selector);
    // Prometheus knows no place in nothing, and counts closing parentheses.
    expect(different).toEqual(["", ")"]);
  });

  it("is refused with the words of Prometheus in nearly all cases", () => {
    const refused = TABLE.filter(({ error }) => error !== undefined);
    const same = refused.filter(({ selector, error }) => errorOf(selector) === error);
    expect(same.length / refused.length).toBeGreaterThan(0.75);
    expect(errorOf('up{job="a" x="b"}')).toBe(
      '1:12: parse error: unexpected identifier "x" in label matching, expected "," or "}"',
    );
  });

  it("has regexes refused as they were given, in the words of Prometheus", () => {
    const differ = TABLE.filter(
      ({ selector, error }) =>
        error?.includes("error parsing regexp") && errorOf(selector) !== error,
    );
    expect(differ.map(({ selector }) => selector)).toEqual([
      // Refused by their size first.
      '{job=~"(a{100}){100}"}',
      '{job=~"\\\\x{110000}"}',
      // The engine does not quote the nothing after it.
      '{job=~"a\\\\"}',
    ]);
    expect(errorOf('{job=~"(?<a>x)(?<a>("}')).toContain("missing closing ): `(?<a>x)(?<a>(`");
  });

  it("is exactly one vector selector to the grammar that editors use", () => {
    const accepted = TABLE.filter(({ prometheus3 }) => prometheus3);
    const others = accepted
      .map(({ selector }) => selector)
      .filter(
        (selector) => !/^PromQL\((?:VectorSelector\([^⚠]*\)|[^⚠]*)\)$/.test(treeOf(selector)),
      );
    // A keyword to that grammar, and a metric to Prometheus.
    expect(others).toEqual(["offset", "offset{a='b'}"]);
  });

  it("means the same when it is written again", () => {
    for (const { selector, prometheus3 } of TABLE) {
      if (prometheus3) {
        const { matchers } = parseSelector(selector);
        const again = parseSelector(writeSelector({ matchers })).matchers;
        const facts = (list: typeof matchers) =>
          list.map(({ label, operator, value }) => [label, operator, value]);
        expect(facts(again)).toEqual(facts(matchers));
      }
    }
  });

  it("is refused when it is longer than 10,000 characters", () => {
    expect(errorOf(`{a="${"x".repeat(10_000)}"}`)).toMatch(/may have 10000 characters/);
  });

  it("may bring many alternatives", () => {
    const names = Array.from({ length: 500 }, (_, index) => `endpoint-${index}`);
    const { matchers } = parseSelector(`{a=~"${names.join("|")}"}`);
    expect(matchers[0]?.matches("endpoint-499")).toBe(true);
    expect(matchers[0]?.matches("endpoint-500")).toBe(false);
    expect(matchers[0]?.cost).toBe(0);
  });
});

describe("a regex", () => {
  const HOSTILE = [
    "(a+)+$",
    "(a|a)*b",
    "(.*)*b",
    "(x+x+)+y",
    "(?:a*){200}b",
    "(((((a*)*)*)*)*)*",
    "(?:.?){300}.{300}",
    "[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*1",
  ];

  it.each(HOSTILE)("that stops other engines takes a few milliseconds: %s", (source) => {
    const begun = process.cpuUsage();
    const { matchers } = parseSelector(`{a=~"${source}"}`);
    expect(matchers[0]?.matches("a".repeat(200))).toBeTypeOf("boolean");
    const { user, system } = process.cpuUsage(begun);
    expect((user + system) / 1_000).toBeLessThan(250);
  });

  it.each([
    ["a{1000}".repeat(3), /2000 steps/],
    ["(a{10}){10}(b{1000}){1}c{900}", /2000 steps/],
    ["x?y".repeat(400), /1000 characters/],
    [`(?i)${"[a-\\x{10fffe}]".repeat(60)}`, /2000 steps/],
    [`(?i)${"[а-я]".repeat(10)}`, /2000 steps/],
    ["\\pL".repeat(300), /2000 steps/],
    ["((((a{9}){9}){9}){9}){9}", /steps|repeat count/],
    [`${"(".repeat(600)}a${")".repeat(300)}`, /missing closing|steps/],
  ])("that would become large is refused before it is made: %.30s", (source, reason) => {
    const tookMs = threadTimer();
    expect(errorOf(`{a=~${JSON.stringify(source)}}`)).toMatch(reason);
    expect(tookMs()).toBeLessThan(50);
  });

  it("of one selector, however many it has, is bounded", () => {
    const matchers = Array.from({ length: 9 }, (_, index) => `a=~"x{900}${index}"`);
    expect(errorOf(`{${matchers.join(",")}}`)).toBe(
      "1:54: parse error: the regexps of this selector are too large together",
    );
  });

  it("of many selectors together is bounded", async () => {
    const selectors = Array.from({ length: 30 }, (_, index) => `{a=~"x{900}${index}"}`);
    await expect(parseSelectors(selectors)).rejects.toThrow(/together are too large/);
  });

  it("is anchored, sees newlines as characters, and missing labels as empty", () => {
    const matches = (source: string, value: string) =>
      parseSelector(`{a=~${JSON.stringify(source)}}`).matchers[0]?.matches(value);
    expect(matches("a|bc", "abc")).toBe(false);
    expect(matches("(a|b)c", "bc")).toBe(true);
    expect(matches("two.lines", "two\nlines")).toBe(true);
    expect(matches("two.*", "two\nlines")).toBe(true);
    expect(matches("x?", "")).toBe(true);
  });
});

it("takes 1,000 selectors at once and refuses more", async () => {
  const names = Array.from({ length: 1_001 }, (_, index) => `metric_${index}`);
  await expect(parseSelectors(names.slice(1))).resolves.toHaveLength(1_000);
  await expect(parseSelectors(names)).rejects.toThrow("there are 1001 selectors");
});

function treeOf(selector: string): string {
  return parser.parse(selector).toString();
}
