import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METRICS_PATH, metricsDocument } from "../../scripts/metrics.ts";
import { METRICS } from "../../src/metrics/declarations.ts";
import { expose } from "../../src/metrics/exposition.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { Page } from "./page.ts";
import { prometheusMissing, RealPrometheus } from "./prometheus.ts";

it("docs/metrics.md is what the declarations say", () => {
  // When this fails: node scripts/metrics.ts
  expect(readFileSync(METRICS_PATH, "utf8")).toBe(metricsDocument());
});

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[];
  };
}

const dashboard = JSON.parse(
  readFileSync(new URL("../../docs/grafana/tessera.json", import.meta.url), "utf8"),
) as Dashboard;

/** As Grafana fills them in when everything is chosen. */
function filled(query: string): string {
  return query
    .replaceAll("$__rate_interval", "1m")
    .replaceAll(/\$(?:organization|deployment|endpoint)\b/g, ".*");
}

const QUERIES = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr: filled(expr) })),
);

const VARIABLES = dashboard.templating.list.flatMap(({ query }) => {
  const text = typeof query === "string" ? query : query.query;
  const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(text) ?? [];
  return selector === undefined ? [] : [{ expr: `count by (${label}) (${filled(selector)})` }];
});

describe("the dashboard", () => {
  const metrics = new Metrics({ node: "n1", now: Date.now });
  const resources = new AsyncDisposableStack();
  let prometheus: RealPrometheus;

  beforeAll(async () => {
    const digits = metrics.deployment({
      organizationId: "one",
      organization: "acme",
      deployment: "digits",
    });
    const page = resources.use(
      await Page.serve(async (_req, res) => {
        // Everything that there is to count happens between two scrapes.
        digits.requestFinished("classify", { protocol: "http", code: "ok", seconds: 0.02 });
        digits.taskSubmitted("train");
        digits.taskStarted("train", 0.2);
        digits.batchFormed("train", 8, 0.02);
        digits.taskFinished("train", "success", 4);
        digits.queueObserved("train", { queued: 4, running: 2, oldestSeconds: 3 });
        digits.workersObserved({
          up: 2,
          starting: 0,
          desired: 3,
          cpuSeconds: performance.now(),
          memoryBytes: 1e8,
        });
        digits.workerReplaced("crashed");
        digits.egressDecided("allowed");
        digits.custom.unread(1);
        res.setHeader("content-type", "text/plain; version=0.0.4");
        for await (const chunk of expose(metrics)) {
          res.write(chunk);
        }
        res.end();
      }),
    );
    const scrapes = [{ job_name: "tessera", static_configs: [{ targets: [page.address] }] }];
    prometheus = resources.use(await RealPrometheus.start({ scrapes }));
    await prometheus.until("sum(rate(tessera_requests_total[1m]))", (value) => Number(value) > 0);
  });
  afterAll(() => resources.disposeAsync());

  const resultOf = async (expr: string): Promise<readonly { value: [number, string] }[]> => {
    const url = `${prometheus.url}/api/v1/query?query=${encodeURIComponent(expr)}`;
    const { data } = (await (await fetch(url)).json()) as { data?: { result: [] } };
    return data?.result ?? [];
  };

  it.each(QUERIES)("has a query with an answer: $title: $expr", async ({ expr }) => {
    const result = await resultOf(expr);
    expect(result.length).toBeGreaterThan(0);
    expect(result.every(({ value }) => Number(value[1]) >= 0)).toBe(true);
  });

  it.each(VARIABLES)("has a variable with values: $expr", async ({ expr }) => {
    expect(VARIABLES).toHaveLength(3);
    expect((await resultOf(expr)).length).toBeGreaterThan(0);
  });

  it("shows every metric of deployments", () => {
    const shown = QUERIES.map(({ expr }) => expr).join(" ");
    const missing = Object.values(METRICS)
      .filter(({ of, name }) => of === "deployment" && !shown.includes(name))
      .map(({ name }) => name);
    expect(missing).toEqual([]);
  });
});

it.skipIf(prometheusMissing !== undefined)(
  "the rules for BentoML's names say what is meant",
  () => {
    const text = readFileSync(
      new URL("../../docs/coming-from-bentoml.md", import.meta.url),
      "utf8",
    );
    const [, rules = ""] = /```yaml\n(groups:\n {2}- name: bentoml\n[\s\S]*?)```/.exec(text) ?? [];
    const folder = mkdtempSync(join(tmpdir(), "tessera-rules-"));
    try {
      writeFileSync(join(folder, "rules.yaml"), rules);
      const expected = [
        ["ok", "200", 3],
        ["not_found", "404", 2],
      ];
      const series = expected.map(([code, , value]) => ({
        series: `tessera_requests_total{deployment="reader",endpoint="read",code="${code}"}`,
        values: String(value),
      }));
      const samples = expected.map(([code, status, value]) => ({
        labels: `bentoml_service_request_total{code="${code}",deployment="reader",endpoint="/read",http_response_code="${status}",service_name="reader"}`,
        value,
      }));
      const tests = {
        rule_files: ["rules.yaml"],
        tests: [
          {
            input_series: series,
            promql_expr_test: [
              { expr: "bentoml_service_request_total", eval_time: "0s", exp_samples: samples },
            ],
          },
        ],
      };
      writeFileSync(join(folder, "tests.yaml"), JSON.stringify(tests));
      const { status, stdout, stderr } = spawnSync(
        "promtool",
        ["test", "rules", join(folder, "tests.yaml")],
        { encoding: "utf8" },
      );
      expect([status, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining("SUCCESS")]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
