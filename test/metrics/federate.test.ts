import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AddedLabels } from "../../src/metrics/external-labels.ts";
import { ownSamples, type SampleSource } from "../../src/metrics/families.ts";
import { type FederateOptions, federate } from "../../src/metrics/federate.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { parseSelectors } from "../../src/metrics/selector/list.ts";
import { type GivenSeries, sampleLines, series, sourceOf, whole } from "./fixture.ts";
import { TABLE } from "./selector/table.ts";
import { longestTurnBelow } from "./turn.ts";

const NOW_MS = 1_700_000_000_000;

async function answer(
  match: readonly string[],
  given: readonly GivenSeries[] | SampleSource,
  {
    externalLabels,
    ...options
  }: Partial<FederateOptions> & { readonly externalLabels?: Record<string, string> } = {},
): Promise<string> {
  return whole(
    federate({
      organizationId: "one",
      selectors: await parseSelectors(match),
      sources: ["samplesOf" in given ? given : sourceOf("one", given)],
      nowMs: NOW_MS,
      added: new AddedLabels(externalLabels),
      ...options,
    }),
  );
}

describe("an answer", () => {
  it("has families by name, untyped, and an empty instance where there is none", async () => {
    const given = [
      series("b_total", { a: "1" }, 2),
      series("a", { z: "2", b: "3" }, 0.5),
      series("b_total", { instance: "i" }, 1e6),
      series("c"),
    ];
    expect(await answer(['{__name__=~".+"}'], given)).toBe(
      `# TYPE a untyped
a{b="3",z="2",instance=""} 0.5 ${NOW_MS}
# TYPE b_total untyped
b_total{a="1",instance=""} 2 ${NOW_MS}
b_total{instance="i"} 1e+06 ${NOW_MS}
# TYPE c untyped
c{instance=""} 1 ${NOW_MS}
`,
    );
  });

  it("adds external labels where a series does not have them", async () => {
    const externalLabels = { region: "eu", instance: "platform", zone: "a" };
    const given = [series("a", { region: "us", m: "1" }), series("a", { instance: "i" })];
    expect(sampleLines(await answer(["a"], given, { externalLabels }))).toEqual([
      'a{instance="i",region="eu",zone="a"} 1',
      'a{m="1",region="us",instance="platform",zone="a"} 1',
    ]);
  });

  it("cannot have an external label whose name is none", () => {
    expect(() => new AddedLabels({ "a-b": "1" })).toThrow("a-b cannot be an external label");
  });

  it("escapes backslashes, quotes and newlines in values", async () => {
    const given = [series("a", { text: 'back\\slash "quote"\nline' })];
    expect(await answer(["a"], given)).toContain('{text="back\\\\slash \\"quote\\"\\nline",');
  });

  it("has each series once, however many selectors select it", async () => {
    const given = [series("a", { x: "1" }), series("a", { x: "2" }), series("b")];
    expect(sampleLines(await answer(["a", 'a{x="1"}', '{x=~".*"}', "a"], given))).toHaveLength(3);
  });

  it.each([[[]], [["{}"]], [["{}", "{ }"]], [["missing"]]])(
    "is empty for %j",
    async (match: string[]) => {
      expect(await answer(match, [series("a")])).toBe("");
    },
  );

  it("has samples with their own time, and none that is older than five minutes", async () => {
    const given = [
      { ...series("a", { age: "new" }), timestampMs: NOW_MS - 1_234 },
      { ...series("a", { age: "limit" }), timestampMs: NOW_MS - 300_000 },
      { ...series("a", { age: "old" }), timestampMs: NOW_MS - 300_001 },
    ];
    const text = await answer(["a"], given);
    expect(text).toContain(`a{age="new",instance=""} 1 ${NOW_MS - 1_234}\n`);
    expect(text).toContain(`a{age="limit",instance=""} 1 ${NOW_MS - 300_000}\n`);
    expect(text).not.toContain("old");
  });

  it("leaves out what ends while it is written", async () => {
    const metrics = new Metrics({ node: "n1", now: () => NOW_MS, maxSeries: 10_000 });
    const measured = { organizationId: "one", organization: "acme", deployment: "digits" };
    const deployment = metrics.deployment(measured);
    for (let index = 0; index < 1_000; index += 1) {
      deployment.taskSubmitted(`endpoint-${index}`);
    }
    const chunks = federate({
      organizationId: "one",
      selectors: await parseSelectors(['{deployment="digits"}']),
      sources: [ownSamples(metrics)],
      nowMs: NOW_MS,
      added: new AddedLabels(),
    });
    const first = await chunks.next();
    deployment.end();
    const rest = await whole(chunks);
    expect(sampleLines(String(first.value)).length).toBeGreaterThan(100);
    expect(sampleLines(rest)).toEqual([]);
    expect(await answer(['{deployment="digits"}'], ownSamples(metrics))).toBe("");
  });

  it("does not hold up the event loop, whatever is asked", async () => {
    const given = Array.from({ length: 100_000 }, (_, index) => ({
      ...series("a", { x: `value-${index}`, y: "constant" }),
    }));
    const source = bulk(given);
    const match = Array.from({ length: 40 }, (_, index) => `{x=~"(value|x)-.*[${index}a-c]z+"}`);
    const all = ['a{y="constant"}'];
    expect(await longestTurnBelow(50, () => answer(all, source))).toBeLessThan(50);
    expect(await longestTurnBelow(50, () => answer(match, source))).toBeLessThan(50);
  }, 240_000);
});

/** Many series, made faster than one by one. */
function bulk(given: readonly GivenSeries[]): SampleSource {
  const lists = [...sourceOf("one", given.slice(0, 1)).samplesOf("one")];
  const [name = "", [first] = []] = [...(lists[0] ?? [])][0] ?? [];
  if (first === undefined) {
    throw new Error("there is none");
  }
  const list = given.map(({ labels }) => ({
    name,
    labels: Object.entries(labels).flat(),
    begin: (added: AddedLabels) => `${name}{${added.write(Object.entries(labels).flat())}} `,
    value: () => 1,
    timestampMs: (nowMs: number) => nowMs,
  }));
  return { samplesOf: () => [new Map([[name, list]])] };
}

describe("two organizations", () => {
  const now = (): number => NOW_MS;
  const metrics = new Metrics({ node: "n1", now });
  // The same names, and one that calls itself by the other's labels.
  for (const [organizationId, organization] of [
    ["one", "acme"],
    ["two", "globex"],
    ["three", "acme"],
  ] as const) {
    const deployment = metrics.deployment({ organizationId, organization, deployment: "digits" });
    deployment.taskSubmitted(`of-${organizationId}`);
    deployment.requestFinished(`of-${organizationId}`, {
      protocol: "http",
      code: "ok",
      seconds: 0.1,
    });
  }
  const seenBy = async (organizationId: string, ...match: string[]): Promise<string[]> =>
    sampleLines(await answer(match, ownSamples(metrics), { organizationId }));
  const foreign = (lines: readonly string[], organizationId: string): string[] =>
    lines.filter((line) => !line.includes(`"of-${organizationId}"`));

  it("see their own series", async () => {
    for (const organizationId of ["one", "two", "three"]) {
      const lines = await seenBy(organizationId, '{__name__=~".+"}');
      expect(lines.length).toBeGreaterThan(15);
      expect(foreign(lines, organizationId)).toEqual([]);
    }
    expect(await seenBy("four", '{__name__=~".+"}')).toEqual([]);
  });

  it("never see the other's, with any selector of the table", async () => {
    for (const { selector, prometheus3 } of TABLE) {
      if (prometheus3) {
        expect(foreign(await seenBy("one", selector), "one")).toEqual([]);
      }
    }
  });

  it.each([
    '{organization="globex"}',
    '{organization!="acme"}',
    '{organization=~".*"}',
    '{organization=~"acme|globex"}',
    '{organization!~"acme"}',
    '{organization=""}',
    'tessera_tasks_submitted_total{organization="globex",organization="acme"}',
    '{endpoint="of-two"}',
    '{endpoint=~"of-(two|three)"}',
  ])("never see the other's by asking for it: %s", async (selector) => {
    expect(foreign(await seenBy("one", selector, "tessera_workers"), "one")).toEqual([]);
  });

  it("never see the other's with any combination of conditions", async () => {
    const label = fc.constantFrom(
      "organization",
      "endpoint",
      "deployment",
      "node",
      "__name__",
      "x",
    );
    const operator = fc.constantFrom("=", "!=", "=~", "!~");
    const value = fc.constantFrom("globex", "acme", "of-two", "", ".*", ".+", "g.*", "tessera_.*");
    const selector = fc
      .array(fc.tuple(label, operator, value), { minLength: 1, maxLength: 4 })
      .map((list) => `{${list.map(([a, b, c]) => `${a}${b}"${c}"`).join(",")}}`);
    await fc.assert(
      fc.asyncProperty(fc.array(selector, { minLength: 1, maxLength: 3 }), async (match) => {
        expect(foreign(await seenBy("one", ...match), "one")).toEqual([]);
      }),
    );
  });
});
