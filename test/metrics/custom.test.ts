import { describe, expect, it } from "vitest";
import type { CustomDeclaration } from "../../src/metrics/custom-metric.ts";
import { expose } from "../../src/metrics/exposition.ts";
import { familiesOf, ownSamples } from "../../src/metrics/families.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { whole } from "./fixture.ts";

const DIGITS = { organizationId: "1", organization: "acme", deployment: "digits" };
const TEXTS = { organizationId: "1", organization: "acme", deployment: "texts" };
const OTHER = { organizationId: "2", organization: "globex", deployment: "digits" };

const help = "What it says";
const read: CustomDeclaration = { name: "read_total", kind: "counter", help, labels: ["code"] };
const loaded: CustomDeclaration = { name: "loaded", kind: "gauge", help, labels: [] };
const wait: CustomDeclaration = {
  name: "wait_seconds",
  kind: "histogram",
  help,
  labels: [],
  buckets: [1, 2],
};

function counting(maxSeries = 100) {
  const metrics = new Metrics({ node: "n1", now: () => 1_000_000, maxSeries });
  /** A deployment whose service declares these. */
  const declared = (measured: typeof DIGITS, ...declarations: CustomDeclaration[]) => {
    const deployment = metrics.deployment(measured);
    deployment.custom.declare(declarations);
    return deployment;
  };
  /** The lines that are not the platform's, without the labels that all have. */
  const lines = async (only?: typeof DIGITS): Promise<string[]> =>
    (await whole(expose(metrics, only)))
      .split("\n")
      .filter((line) => line !== "" && !/^(# \w+ )?(tessera|process)_/.test(line))
      .map((line) => line.replace(/,?node="n1",organization="acme"/, ""));
  return { metrics, declared, lines };
}

const one = (code: string, value = 1) => ({ endpoint: "go", labels: [code], value });
const now = (value: number) => ({ labels: [], value });

describe("what services count themselves", () => {
  it("adds up what workers send, whatever platform labels are called alike", async () => {
    const { declared, lines } = counting();
    const { custom } = declared(DIGITS, read, wait);
    custom.count("a", read, one("strange"));
    custom.count("b", read, one("strange", 2.5));
    custom.count("b", read, { labels: ['"\n'], value: 1 });
    custom.count("a", wait, { labels: [], value: 5, counts: [0, 1, 1] });
    custom.count("b", wait, { labels: [], value: 1, counts: [1, 0, 0] });
    expect(await lines()).toEqual([
      "# HELP read_total What it says",
      "# TYPE read_total counter",
      'read_total{code="strange",deployment="digits",endpoint="go"} 3.5',
      'read_total{code="\\"\\n",deployment="digits"} 1',
      "# HELP wait_seconds What it says",
      "# TYPE wait_seconds histogram",
      'wait_seconds_bucket{deployment="digits",le="1"} 1',
      'wait_seconds_bucket{deployment="digits",le="2"} 2',
      'wait_seconds_bucket{deployment="digits",le="+Inf"} 3',
      'wait_seconds_sum{deployment="digits"} 6',
      'wait_seconds_count{deployment="digits"} 3',
    ]);
  });

  it.each([
    ["sum", 7],
    ["min", 2],
    ["max", 5],
    ["average", 3.5],
  ] as const)(
    "makes the %s of what a gauge is in the workers that are up",
    async (aggregator, is) => {
      const { declared, lines } = counting();
      const gauge = { ...loaded, aggregator };
      const { custom } = declared(DIGITS, gauge);
      for (const [worker, value] of [
        ["a", 1],
        ["a", 2],
        ["b", 5],
        ["c", 100],
      ] as const) {
        custom.count(worker, gauge, now(value));
      }
      custom.workerEnded("c");
      expect((await lines()).at(-1)).toBe(`loaded{deployment="digits"} ${is}`);
      custom.workerEnded("a");
      expect((await lines()).at(-1)).toBe('loaded{deployment="digits"} 5');
      custom.workerEnded("b");
      expect(await lines()).toEqual([]);
      custom.count("d", gauge, now(0));
      expect((await lines()).at(-1)).toBe('loaded{deployment="digits"} 0');
    },
  );

  it("shows a gauge however long ago it was set", () => {
    const { metrics, declared } = counting();
    declared(DIGITS, loaded).custom.count("a", loaded, now(1));
    const families = familiesOf("1", [ownSamples(metrics)]);
    const lists = families.find(({ name }) => name === "loaded")?.lists ?? [];
    expect(lists[0]?.[0]?.timestampMs(9e9)).toBe(9e9);
  });

  it("goes on in a metric that is declared as before, and begins others anew", async () => {
    const { declared, lines } = counting();
    const { custom } = declared(DIGITS, read, loaded, wait);
    custom.count("a", read, one("ok"));
    custom.count("a", loaded, now(1));
    custom.count("a", wait, { labels: [], value: 5, counts: [0, 0, 1] });
    const further = { ...read, help: "Said\nbetter\\" };
    const labelled = { ...loaded, labels: ["model"] };
    custom.declare([further, labelled]);
    custom.count("a", read, one("ok"));
    custom.count("b", further, one("ok"));
    // Of workers that run the revision before.
    custom.count("a", loaded, now(7));
    custom.count("a", wait, { labels: [], value: 5, counts: [0, 0, 1] });
    custom.count("b", labelled, { labels: ["small"], value: 2 });
    expect((await lines()).filter((line) => !line.startsWith("#"))).toEqual([
      'read_total{code="ok",deployment="digits",endpoint="go"} 3',
      'loaded{deployment="digits",model="small"} 2',
    ]);
  });

  it("shows those of one name together, without a type where deployments differ", async () => {
    const { declared, lines } = counting();
    declared(DIGITS, read, loaded).custom.count("a", loaded, now(1));
    declared(TEXTS, { ...loaded, kind: "counter" }).custom.count(
      "b",
      { ...loaded, kind: "counter" },
      {
        endpoint: "go",
        labels: [],
        value: 2,
      },
    );
    declared(OTHER, loaded).custom.count("c", loaded, now(3));
    const shown = await lines();
    expect(shown).toEqual([
      "# HELP loaded What it says",
      "# TYPE loaded untyped",
      'loaded{deployment="digits"} 1',
      'loaded{deployment="texts",endpoint="go"} 2',
      'loaded{deployment="digits",node="n1",organization="globex"} 3',
    ]);
    expect(await lines(DIGITS)).toEqual([
      ...["# HELP loaded What it says", "# TYPE loaded gauge"],
      'loaded{deployment="digits"} 1',
    ]);
  });

  it("shows what is called like a part of another's histogram without a type, by itself", async () => {
    const { declared, lines } = counting();
    const called = { ...loaded, name: "wait_seconds_count" };
    const nested = { ...wait, name: "wait_seconds_sum", buckets: [1] };
    const texts = declared(TEXTS, { ...loaded, help: "Not shared" }).custom;
    declared(DIGITS, wait).custom.count("a", wait, { labels: [], value: 5, counts: [0, 1, 1] });
    declared(OTHER, called, nested).custom.count("b", called, now(7));
    texts.count("c", loaded, now(1));
    const shown = await lines();
    expect(shown).toEqual([
      ...["# HELP loaded Not shared", "# TYPE loaded gauge", 'loaded{deployment="texts"} 1'],
      "# HELP wait_seconds_bucket What it says",
      "# TYPE wait_seconds_bucket untyped",
      'wait_seconds_bucket{deployment="digits",le="1"} 0',
      'wait_seconds_bucket{deployment="digits",le="2"} 1',
      'wait_seconds_bucket{deployment="digits",le="+Inf"} 2',
      "# HELP wait_seconds_sum What it says",
      "# TYPE wait_seconds_sum untyped",
      'wait_seconds_sum{deployment="digits"} 5',
      "# HELP wait_seconds_count What it says",
      "# TYPE wait_seconds_count untyped",
      'wait_seconds_count{deployment="digits"} 2',
      'wait_seconds_count{deployment="digits",node="n1",organization="globex"} 7',
    ]);
    // Each by itself has nothing to be mistaken for.
    expect(await lines(DIGITS)).toContain("# TYPE wait_seconds histogram");
    expect(await lines(OTHER)).toContain("# TYPE wait_seconds_count gauge");
  });

  it("keeps the series of organizations apart", () => {
    const { metrics, declared } = counting();
    declared(DIGITS, loaded).custom.count("a", loaded, now(1));
    declared(OTHER, loaded).custom.count("a", loaded, now(2));
    const valuesOf = (organizationId: string) =>
      familiesOf(organizationId, [ownSamples(metrics)])
        .filter(({ name }) => name === "loaded")
        .flatMap(({ lists }) => lists.flat().map((series) => series.value()));
    expect(valuesOf("1")).toEqual([1]);
    expect(valuesOf("2")).toEqual([2]);
    expect(valuesOf("3")).toEqual([]);
  });

  it("ends with its deployment", async () => {
    const { metrics, declared, lines } = counting();
    const digits = declared(DIGITS, read);
    digits.custom.count("a", read, one("ok"));
    const [{ lists } = { lists: [] }] = familiesOf("1", [ownSamples(metrics)]);
    digits.end();
    expect(lists.flat().map((series) => series.value())).toEqual([undefined]);
    digits.custom.declare([read]);
    digits.custom.count("a", read, one("ok"));
    expect(await lines()).toEqual([]);
    expect(metrics.groupsOf("1").every(({ size }) => size === 0)).toBe(true);
  });
});

describe("too many series", () => {
  const droppedIn = async (metrics: Metrics): Promise<string[]> =>
    (await whole(expose(metrics)))
      .split("\n")
      .filter((line) => line.startsWith("tessera_series_dropped_total"))
      .map((line) => line.replace(/^.*metric="(\w+)".*organization="(\w+)"\} /, "$2 $1 "));

  it("of a metric are not counted, and what was not is", async () => {
    const { metrics, declared, lines } = counting(3);
    const { custom } = declared(DIGITS, read);
    for (const code of ["a", "b", "c", "d", "e", "a"]) {
      custom.count("a", read, one(code));
    }
    custom.dropped("read_total", 40);
    declared(OTHER, read).custom.count("a", read, one("f"));
    expect((await lines()).filter((line) => !line.startsWith("#"))).toHaveLength(4);
    expect(await droppedIn(metrics)).toEqual(["acme read_total 42"]);
  });

  it("of an organization are not counted, until others have ended", async () => {
    const { metrics, declared } = counting(1_000_000);
    const buckets = Array.from({ length: 47 }, (_, index) => index);
    const large: CustomDeclaration = { ...wait, labels: ["n"], buckets };
    const digits = declared(DIGITS, large);
    const texts = declared(TEXTS, read);
    const other = declared(OTHER, read);
    const counts = Array<number>(48).fill(1);
    for (let index = 0; index < 401; index += 1) {
      digits.custom.count("a", large, { labels: [`${index}`], value: 1, counts });
    }
    texts.custom.count("a", read, one("ok"));
    other.custom.count("a", read, one("ok"));
    expect(await droppedIn(metrics)).toEqual(["acme wait_seconds 1", "acme read_total 1"]);
    digits.end();
    texts.custom.count("a", read, one("ok"));
    expect(await droppedIn(metrics)).toEqual(["acme wait_seconds 1", "acme read_total 1"]);
  });
});
