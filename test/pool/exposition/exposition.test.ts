import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Exposition } from "../../../src/pool/exposition/exposition.ts";
import type { ExposedMetric } from "../../../src/protocol/messages.ts";

function exposing() {
  const changes: ExposedMetric[] = [];
  const lines: string[] = [];
  let unread = 0;
  const exposition = new Exposition({
    onChanges: (exposed) => changes.push(...exposed),
    onUnread: () => {
      unread += 1;
    },
    onLine: (line) => lines.push(line),
  });
  const source = exposition.source("its server");
  return {
    exposition,
    source,
    lines,
    unread: () => unread,
    /** What changed when a source says this, much later than the last time. */
    said: (text: string, by = source) => {
      vi.advanceTimersByTime(60_000);
      by.take(text);
      return changes.splice(0).map(({ name, changes }) => [name, ...changes]);
    },
    changes,
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("what a program of a worker exposes", () => {
  it("is told as changes: increases of counters, values of gauges", () => {
    const { said } = exposing();
    const text = (count: number, left: number) =>
      `# TYPE done_total counter\ndone_total ${count}\n# TYPE left gauge\nleft ${left}\n`;
    expect(said(text(3, 5))).toEqual([
      ["done_total", { labels: [], value: 3 }],
      ["left", { labels: [], value: 5 }],
    ]);
    expect(said(text(3, 5))).toEqual([]);
    expect(said(text(5, 4))).toEqual([
      ["done_total", { labels: [], value: 2 }],
      ["left", { labels: [], value: 4 }],
    ]);
  });

  it("is told whole where it went down, because a process began anew", () => {
    const { said } = exposing();
    const text = (count: number, of: number) =>
      `# TYPE done_total counter\ndone_total ${count}\n# TYPE took histogram\n` +
      `took_bucket{le="1"} ${of}\ntook_count ${of + 1}\ntook_sum ${of}\n`;
    said(text(10, 7));
    expect(said(text(2, 3))).toEqual([
      ["done_total", { labels: [], value: 2 }],
      ["took", { labels: [], value: 3, counts: [3, 1] }],
    ]);
    expect(said(text(2, 5))).toEqual([["took", { labels: [], value: 2, counts: [2, 0] }]]);
  });

  it("says when a gauge is not there any more", () => {
    const { said } = exposing();
    said('left{job="a"} 1\nleft{job="b"} 2\n');
    expect(said('left{job="b"} 2\n')).toEqual([["left", { labels: ["exported_job", "a"] }]]);
    expect(said("")).toEqual([["left", { labels: ["exported_job", "b"] }]]);
    expect(said("")).toEqual([]);
  });

  it("is taken of one source where several expose it", () => {
    const { exposition, said } = exposing();
    const other = exposition.source("another server");
    said("a 1");
    expect(said("a 1\nb 2", other)).toEqual([["b", { labels: [], value: 2 }]]);
    expect(said("a 3")).toEqual([["a", { labels: [], value: 3 }]]);
    expect(said("a 3\nb 3")).toEqual([]);
  });

  it("is read twice a second at most, the newest of what was said, and at the end", () => {
    const { source, exposition, changes } = exposing();
    for (let value = 1; value <= 10; value += 1) {
      source.take(`a ${value}`);
    }
    expect(changes.splice(0).map((each) => each.changes[0]?.value)).toEqual([1]);
    vi.advanceTimersByTime(60_000);
    expect(changes.splice(0).map((each) => each.changes[0]?.value)).toEqual([10]);
    source.take("a 11");
    source.take("a 12");
    exposition[Symbol.dispose]();
    source.take("a 13");
    expect(changes.at(-1)?.changes[0]?.value).toBe(12);
  });

  it("says once what is wrong, counts it each time, and says when all is well again", () => {
    const { said, lines, unread, source } = exposing();
    said("a 1");
    said("no page");
    said("no page");
    source.failed("it answered with 404");
    said("tessera_a 1");
    said("a 2");
    expect(unread()).toBe(3);
    expect(lines).toEqual([
      'the metrics of its server cannot be read: line 1 has a value that is no number: "page"',
      "the metrics of its server cannot be read: it answered with 404",
      expect.stringMatching(/^the metrics of its server are read in part: "tessera_a" has a name/),
      "the metrics of its server are read again",
    ]);
  });

  it("counts nothing twice after a text that could not be read", () => {
    const { said } = exposing();
    const text = (count: number) => `# TYPE done_total counter\ndone_total ${count}\n`;
    said(text(3));
    said("no page");
    expect(said(text(4))).toEqual([["done_total", { labels: [], value: 1 }]]);
  });
});
