import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { expose } from "../../src/metrics/exposition.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { Page } from "./page.ts";
import { RealPrometheus } from "./prometheus.ts";

interface ScaledObject {
  readonly kind: string;
  readonly spec: {
    readonly triggers: readonly {
      readonly type: string;
      readonly metricType: string;
      readonly metadata: Readonly<Record<string, string>>;
    }[];
  };
}

const guide = readFileSync(new URL("../../docs/scaling.md", import.meta.url), "utf8");
const blocks = [...guide.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = ""]) => parse(text));
const scaled = blocks.find((one) => one?.kind === "ScaledObject") as ScaledObject;
const [trigger] = scaled.spec.triggers;
const query = trigger?.metadata.query ?? "";

const resources = new AsyncDisposableStack();
let prometheus: RealPrometheus;

/** The page of a node that wants so many workers of acme/digits, and others. */
function pageOf(node: string, desired: number): Promise<Page> {
  const metrics = new Metrics({ node, now: Date.now });
  const worked = { up: 0, starting: 0, cpuSeconds: 0, memoryBytes: 0 };
  const of = (organization: string, deployment: string) =>
    metrics.deployment({ organizationId: organization, organization, deployment });
  const wanted = [
    [of("acme", "digits"), desired],
    [of("acme", "letters"), 20],
    [of("globex", "digits"), 300],
  ] as const;
  return Page.serve(async (_req, res) => {
    for (const [one, count] of wanted) {
      one.workersObserved({ ...worked, desired: count });
    }
    res.setHeader("content-type", "text/plain; version=0.0.4");
    for await (const chunk of expose(metrics)) {
      res.write(chunk);
    }
    res.end();
  });
}

beforeAll(async () => {
  const pages = [resources.use(await pageOf("n1", 2)), resources.use(await pageOf("n2", 3))];
  const targets = pages.map(({ address }) => address);
  const scrapes = [
    { job_name: "tessera", honor_labels: true, static_configs: [{ targets }] },
  ] as const;
  prometheus = resources.use(await RealPrometheus.start({ scrapes }));
  await prometheus.until("count(tessera_workers_desired)", (count) => Number(count) === 6);
});
afterAll(() => resources.disposeAsync());

/** What KEDA takes for the number: it refuses an answer with several series. */
async function answerTo(promql: string): Promise<number> {
  const url = `${prometheus.url}/api/v1/query?query=${encodeURIComponent(promql)}`;
  const { data } = (await (await fetch(url)).json()) as {
    data: { resultType: string; result: { value: [number, string] }[] };
  };
  expect(data.resultType).toBe("vector");
  expect(data.result).toHaveLength(1);
  return Number(data.result[0]?.value[1]);
}

it("the guide's query for KEDA is the sum over the nodes, of that deployment alone", async () => {
  expect(trigger).toMatchObject({ type: "prometheus", metricType: "AverageValue" });
  const wanted = await answerTo(query);
  expect(wanted).toBe(5);
  expect(Math.ceil(wanted / Number(trigger?.metadata.threshold))).toBe(5);
  expect(wanted).toBeGreaterThan(Number(trigger?.metadata.activationThreshold));
});

it("the guide's query answers none where the deployment has no series", async () => {
  expect(await answerTo(query.replace('"digits"', '"unknown"'))).toBe(0);
});
