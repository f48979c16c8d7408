import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AddedLabels } from "../../src/metrics/external-labels.ts";
import { federate } from "../../src/metrics/federate.ts";
import { formatNumber } from "../../src/metrics/number.ts";
import { parseSelectors } from "../../src/metrics/selector/list.ts";
import { type GivenSeries, pageOf, sampleLines, series, sourceOf, whole } from "./fixture.ts";
import { Page } from "./page.ts";
import { RealPrometheus } from "./prometheus.ts";
import { TABLE } from "./selector/table.ts";

const SERIES: readonly GivenSeries[] = [
  series("up"),
  series("up", { job: "a", instance: "i1" }),
  series("up", { job: "b", instance: "i2" }),
  series("up", { job: "a", instance: "i2", x: "1" }),
  series("down", { job: "a" }, 0),
  series("a:b:c", { job: "b" }),
  series("offset", { a: "b" }),
  series("sum", { job: "api" }),
  series("and", {}),
  series("start", {}),
  series("count", { job: "a\tb" }),
  series("http_requests_total", { job: "a", code: "200", path: "/a\\b" }, 12),
  series("http_requests_total", { job: "a", code: "404", path: "/a/b" }, 3),
  series("http_requests_total", { job: "b", code: "503", path: "/a" }, 4),
  series("latency_bucket", { le: "0.5", job: "x" }, 3),
  series("latency_bucket", { le: "+Inf", job: "x" }, 9),
  ...[
    "it's",
    'say "hi"',
    "two\nlines",
    "grüße",
    "🙂",
    "日本",
    "a",
    "b",
    "aa",
    "ab",
    "a b",
    "x",
  ].map((text, index) => series("texts", { text, a: text, job: text }, index)),
  ...["A", "aaa", "a.b", "abc", "i1", "i2", "api", "prod-1", "dev-1", "xx", "1", "12"].map((text) =>
    series("more", { job: text, missing: text === "A" ? "a" : "" }),
  ),
];

/** As many numbers as the format has to be compared on. */
const NUMBERS = readFileSync(new URL("numbers.txt", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => Buffer.from(line.slice(0, 16), "hex").readDoubleBE());

let prometheus: RealPrometheus;
const resources = new AsyncDisposableStack();

beforeAll(async () => {
  const numbers = NUMBERS.map((value, index) =>
    series("number", { index: String(index), job: "numbers", instance: "n" }, value),
  );
  const page = resources.use(await Page.serve(pageOf([...SERIES, ...numbers])));
  prometheus = resources.use(
    await RealPrometheus.start({
      scrapes: [
        {
          job_name: "page",
          honor_labels: true,
          static_configs: [{ targets: [page.address], labels: { instance: "scraped" } }],
        },
      ],
      externalLabels: { region: "eu", job: "external" },
    }),
  );
  await prometheus.until("count(number)", (value) => Number(value) === numbers.length);
});

afterAll(() => resources.disposeAsync());

/** What Prometheus answers, without its own series about the scrape. */
async function theirs(...match: string[]): Promise<string[]> {
  const { status, text } = await prometheus.federate(...match);
  expect([match, status]).toEqual([match, 200]);
  return sampleLines(text).filter((line) => !/instance="scraped"|^number\{/.test(line));
}

async function ours(...match: string[]): Promise<string[]> {
  const text = await whole(
    federate({
      organizationId: "one",
      selectors: await parseSelectors(match),
      sources: [sourceOf("one", SERIES)],
      nowMs: Date.now(),
      added: new AddedLabels({ region: "eu", job: "external" }),
    }),
  );
  return sampleLines(text);
}

describe("the table of selectors", () => {
  it("is what the installed Prometheus says", async () => {
    const different: string[] = [];
    for (const { selector, prometheus2, prometheus3 } of TABLE) {
      const { status } = await prometheus.federate(selector);
      if ((status === 200) !== (prometheus.major === 2 ? prometheus2 : prometheus3)) {
        different.push(selector);
      }
    }
    expect(different).toEqual([]);
  });

  it("selects the series that Prometheus selects", async () => {
    let selected = 0;
    for (const { selector, prometheus2, prometheus3 } of TABLE) {
      if (prometheus2 && prometheus3) {
        const expected = comparable(await theirs(selector));
        selected += expected.length;
        expect([selector, comparable(await ours(selector))]).toEqual([selector, expected]);
      }
    }
    // Most of them select something: an empty answer proves little.
    expect(selected).toBeGreaterThan(1_000);
  });

  it("selects the union of several, each series once", async () => {
    const match = ['up{job="a"}', "up", '{job=~"a|b"}', '{le=~".+"}', "{}"];
    expect(await ours(...match)).toEqual(await theirs(...match));
  });
});

/** Until 3.0 a dot did not match a newline: the one series that has one is left out there. */
const comparable = (lines: readonly string[]): readonly string[] =>
  prometheus.major === 2 ? lines.filter((line) => !line.includes("two\\nlines")) : lines;

it("writes what Prometheus writes, to the byte, but for the time", async () => {
  const match = ["up", "down", "latency_bucket", "a:b:c"];
  const { text } = await prometheus.federate(...match);
  const lines = (from: string) =>
    from
      .split("\n")
      .filter((line) => !line.includes('instance="scraped"'))
      .map((line) => line.replace(/ \d{13}$/, " TIME"));
  const own = await whole(
    federate({
      organizationId: "one",
      selectors: await parseSelectors(match),
      sources: [sourceOf("one", SERIES)],
      nowMs: Date.now(),
      added: new AddedLabels({ region: "eu", job: "external" }),
    }),
  );
  // Within a family Prometheus keeps no order.
  expect(lines(own).filter((line) => line.startsWith("#"))).toEqual(
    lines(text).filter((line) => line.startsWith("#")),
  );
  expect(lines(own).sort()).toEqual(lines(text).sort());
});

it("writes 1,000 numbers as Prometheus does", async () => {
  const { text } = await prometheus.federate("number");
  const written = new Map(
    sampleLines(text).map((line) => {
      const [, index, value] = /index="(\d+)".*\} (\S+)$/.exec(line) ?? [];
      return [Number(index), value];
    }),
  );
  expect(written.size).toBeGreaterThan(1_000);
  expect(NUMBERS.map(formatNumber)).toEqual(NUMBERS.map((_, index) => written.get(index)));
});
