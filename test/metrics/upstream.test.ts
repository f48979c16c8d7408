import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Federation } from "../../src/metrics/federation.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { MatchError } from "../../src/metrics/selector/error.ts";
import { Upstream, UpstreamError } from "../../src/metrics/upstream.ts";
import { pageOf, sampleLines, series, whole } from "./fixture.ts";
import { Page } from "./page.ts";
import { RealPrometheus } from "./prometheus.ts";
import { TABLE } from "./selector/table.ts";

const ACME = { organizationId: "one", organization: "acme" };
const now = Date.now;
const metrics = new Metrics({ node: "n1", now });
const resources = new AsyncDisposableStack();
let prometheus: RealPrometheus;
let federation: Federation;

beforeAll(async () => {
  const given = ["acme", "globex", 'g"l\\o'].flatMap((organization) => [
    series("up", { organization, job: "a", of: organization }),
    series("tessera_queue_length", { organization, text: "grüße", of: organization }, 7),
  ]);
  const page = resources.use(await Page.serve(pageOf([...given, series("up", { job: "none" })])));
  prometheus = resources.use(
    await RealPrometheus.start({
      scrapes: [
        { job_name: "page", honor_labels: true, static_configs: [{ targets: [page.address] }] },
      ],
      externalLabels: { region: "eu" },
    }),
  );
  await prometheus.until("count(tessera_queue_length)", (value) => value === "3");
  federation = new Federation({ metrics, now, upstream: new Upstream(prometheus.url) });
});

afterAll(() => resources.disposeAsync());

const ask = async (...match: string[]): Promise<string[]> =>
  sampleLines(await whole(await federation.answer({ ...ACME, match })));

describe("with a Prometheus behind it, the platform", () => {
  it("answers what that one has of the organization", async () => {
    expect(await ask("tessera_queue_length", '{job=~"a|none"}')).toEqual([
      'tessera_queue_length{of="acme",organization="acme",text="grüße",instance="",region="eu"} 7',
      'up{job="a",of="acme",organization="acme",instance="",region="eu"} 1',
    ]);
  });

  it("never shows another organization's, with any selector of the table", async () => {
    for (const { selector, prometheus2, prometheus3 } of TABLE) {
      if (prometheus2 && prometheus3) {
        const lines = await ask(selector);
        expect([selector, lines.filter((line) => !line.includes('of="acme"'))]).toEqual([
          selector,
          [],
        ]);
      }
    }
  });

  it.each([
    "{}",
    '{organization="globex"}',
    '{organization!="acme"}',
    '{organization=""}',
    '{organization!~"acme"}',
    'up{of="globex"}',
    `up{of="x\\"} or up{of=\\"globex"}`,
    'up{of=`"} or up{of="globex`}',
    `up{of="\\n\\\\\\"}"}`,
  ])("answers nothing for %s", async (selector) => {
    expect(await ask(selector)).toEqual([]);
  });

  it("keeps to names that would be syntax", async () => {
    const odd = new Federation({ metrics, now, upstream: new Upstream(prometheus.url) });
    const organization = 'g"l\\o';
    const chunks = await odd.answer({ organizationId: "three", organization, match: ["up"] });
    expect(sampleLines(await whole(chunks))).toHaveLength(1);
  });

  it("refuses what is no selector without asking", async () => {
    const nobody = new Federation({ metrics, now, upstream: new Upstream("http://127.0.0.1:1") });
    await expect(nobody.answer({ ...ACME, match: ["up or up"] })).rejects.toThrow(MatchError);
    await expect(nobody.answer({ ...ACME, match: ["up"] })).rejects.toThrow(
      new UpstreamError("the Prometheus behind this platform cannot be reached"),
    );
  });

  it("says so when that one refuses, and hands on who asks it", async () => {
    const asked: string[] = [];
    await using page = await Page.serve((req, res) => {
      asked.push(`${req.url?.split("?")[0]} ${req.headers.authorization}`);
      res.statusCode = 403;
      res.end("secret reasons");
    });
    const upstream = new Upstream(`http://user:p%40ss@${page.address}/behind/`);
    const refused = new Federation({ metrics, now, upstream });
    await expect(refused.answer({ ...ACME, match: ["up"] })).rejects.toThrow(
      new UpstreamError("the Prometheus behind this platform answered with status 403"),
    );
    const basic = Buffer.from("user:p@ss").toString("base64");
    expect(asked).toEqual([`/behind/federate Basic ${basic}`]);
  });
});
