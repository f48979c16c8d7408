import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { writeIndex } from "../../../src/artifacts/index-file.ts";
import {
  createTesseraClient,
  Metric,
  type QueryMetricsResponse,
} from "../../../src/client/index.ts";
import { RealPrometheus } from "../../metrics/prometheus.ts";
import { Person } from "../cli/person.ts";
import { artifact, until, upload, World } from "../hosting/world.ts";
import { administration, bearer, PASSWORD } from "../start/platform.ts";

const ALL = '{__name__=~"tessera_.*"}';

const OPERATOR = "of-the-operator";

let world: World;
let scrapes: Record<string, unknown>[];
let acmeToken: string;
let globexToken: string;
const resources = new AsyncDisposableStack();

beforeAll(async () => {
  world = resources.use(
    await World.start({
      env: { TESSERA_EXTERNAL_LABELS: "region=eu", TESSERA_METRICS_TOKEN: OPERATOR },
    }),
  );
  const { platform, cookie } = world;
  await using operator = await administration(world.folder);
  const created = await platform.call("/api/v1/organizations", { name: "globex" }, cookie);
  expect(created.status, JSON.stringify(created.json)).toBe(200);
  await operator.setMonitoring("acme", true);
  await operator.setMonitoring("globex", true);
  await world.deployed("echo", await artifact(), { settings: { minWorkers: 1, maxWorkers: 1 } });
  await deployToGlobex();
  const kind = "organization";
  const asked = { kind, access: ["monitoring"], organization: "globex", name: "prometheus" };
  globexToken = (await platform.createToken(cookie, asked)).value;
  ({ scrapes, value: acmeToken } = await printedConfiguration());
});
afterAll(() => resources.disposeAsync());

async function deployToGlobex(): Promise<void> {
  const { platform, cookie } = world;
  const { value } = await platform.createToken(cookie, { name: "dev", organization: "globex" });
  const client = createTesseraClient({ url: platform.url, token: value });
  const built = await artifact();
  await upload(client, built);
  await client.deployments.createRevision({
    deployment: "secret-service",
    index: Buffer.from(writeIndex(built.index)),
  });
}

/** What `tessera token create --monitoring` says to an admin at a terminal. */
async function printedConfiguration() {
  using ada = resources.use(new Person());
  const { value } = await world.platform.createToken(world.cookie, {
    name: "laptop",
    organization: "acme",
  });
  const { url } = world.platform;
  await ada.run(["cloud", "login", "--endpoint", url, "--api-token", "-"], { input: `${value}\n` });
  const args = ["token", "create", "prometheus", "--kind", "organization", "--monitoring"];
  const { stdout, stderr } = await ada.run(args, {
    answers: [
      ["E-mail address", "\n"],
      ["Password", `${PASSWORD}\n`],
    ],
  });
  // Where nobody sits at a terminal, logs may keep what is said.
  const logged = await ada.run([...args, "--password-stdin"], { input: PASSWORD });
  expect(logged.stderr).toContain("credentials: <token>");
  expect(logged.stderr).not.toContain(logged.stdout.trim());
  const { scrape_configs } = parse(stderr.slice(stderr.indexOf("scrape_configs:"))) as {
    scrape_configs: Record<string, unknown>[];
  };
  return { scrapes: scrape_configs, value: stdout.trim() };
}

async function federate(token: string, match = ALL): Promise<string> {
  const path = `/federate?match[]=${encodeURIComponent(match)}`;
  const res = await fetch(world.platform.url + path, { headers: bearer(token) });
  expect(res.status).toBe(200);
  return res.text();
}

async function linesUntil(token: string, match: string, fits: (text: string) => boolean) {
  for (;;) {
    const text = await federate(token, match);
    if (fits(text)) {
      return text;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The values of all series, without the labels that all of this deployment's have. */
function valuesIn(text: string): Record<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => {
      const [, series = "", value] = /^(.*) (\S+) \d+$/.exec(line) ?? [];
      const common = /(?<=[{,])(?:deployment|node|organization|instance|region)="[^"]*",?/g;
      return [series.replace(common, "").replace(",}", "}"), Number(value)];
    }),
  );
}

describe("a platform with a deployment", () => {
  it("shows the queue's length to a Prometheus that has the printed configuration", async () => {
    await using prometheus = await RealPrometheus.start({ scrapes });
    const labels = 'organization="acme",deployment="echo",endpoint="work",region="eu"';
    const length = `tessera_queue_length{${labels}}`;
    const later = "/work/submit?delay=3600";
    const submit = () => world.call("echo", later, { body: { text: "later" } });
    const [first, second] = await Promise.all([submit(), submit()]);
    expect(first.status, first.text).toBe(202);
    await prometheus.until(length, (value) => value === "2");
    const id = second.json.task_id ?? second.json.taskId;
    const cancelled = await world.call("echo", "/work/cancel", { body: { task_id: id } });
    expect(cancelled.status, cancelled.text).toBe(200);
    await prometheus.until(length, (value) => value === "1");
    const finished = `tessera_tasks_finished_total{endpoint="work",outcome="cancelled"}`;
    await prometheus.until(finished, (value) => value === "1");
  });

  it("counts calls, attempts and workers", async () => {
    expect((await world.call("echo", "/say", { body: { text: "a" } })).status).toBe(200);
    expect((await world.call("echo", "/say", { body: {} })).status).toBe(400);
    expect((await world.call("echo", "/nothing", { body: {} })).status).toBe(404);
    const submitted = await world.call("echo", "/work/submit", { body: { text: "b" } });
    expect(submitted.status).toBe(202);
    const text = await linesUntil(acmeToken, ALL, (all) =>
      /tasks_finished_total\{[^}]*outcome="success"/.test(all),
    );
    const of = (name: string, labels: string) => `tessera_${name}{${labels}}`;
    const http = 'endpoint="say",protocol="http"';
    const counted = {
      [of("requests_total", `code="ok",${http}`)]: 1,
      [of("requests_total", `code="invalid_argument",${http}`)]: 1,
      [of("request_duration_seconds_count", http)]: 2,
      [of("tasks_started_total", 'endpoint="work"')]: 1,
      [of("task_run_seconds_count", 'endpoint="work"')]: 1,
      [of("task_queue_wait_seconds_count", 'endpoint="work"')]: 1,
    };
    expect(valuesIn(text)).toMatchObject(counted);
    expect(text).toMatch(/^tessera_worker_memory_bytes\{.*\} [1-9]/m);
    expect(text).not.toContain("nothing");
  });

  it("shows a Prometheus what the service counts itself, and its organization alone", async () => {
    const path = '{__name__=~"said_.*"}';
    await using prometheus = await RealPrometheus.start({ scrapes });
    expect((await world.call("echo", "/say", { body: { text: "three" } })).status).toBe(200);
    const labels = 'deployment="echo",endpoint="say",region="eu"';
    const said = `said_letters_total{organization="acme",${labels}}`;
    await prometheus.until(said, (value) => Number(value) >= 5);
    expect(await federate(acmeToken, path)).toMatch(/^# TYPE said_letters_total untyped\nsaid_/);
    for (const match of [path, '{organization="acme"}', '{__name__=~".+"}']) {
      expect(await federate(globexToken, match)).not.toMatch(/said_letters|acme/);
    }
    const own = await world.call("echo", "/metrics");
    const heading =
      "# HELP said_letters_total Letters that were said\n# TYPE said_letters_total counter\n";
    expect(own.text).toContain(`${heading}said_letters_total{deployment="echo",endpoint="say",`);
    const node = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
    expect(await node.text()).toContain(heading);
  });

  it("keeps what was measured over time, and shows it to its organization alone", async () => {
    expect((await world.call("echo", "/say", { body: { text: "over time" } })).status).toBe(200);
    const deployment = "echo";
    const asked = { deployment, metrics: [Metric.CALLS], selectors: ["said_letters_total"] };
    const isCounted = ({ series }: QueryMetricsResponse): boolean =>
      ["calls", "said_letters_total"].every((name) =>
        series.some((one) => one.name === name && one.values.some((value) => value > 0)),
      );
    await until(() => world.client.metrics.queryMetrics(asked), isCounted);
    const { cookie, platform } = world;
    const theirs = { organization: "globex", name: "reader" };
    const { value } = await platform.createToken(cookie, theirs);
    const globex = createTesseraClient({ url: platform.url, token: value });
    await expect(globex.metrics.queryMetrics(asked)).rejects.toMatchObject({ code: Code.NotFound });
  });

  it("never shows an organization the series of another", async () => {
    const matches = [
      ALL,
      '{organization="acme"}',
      '{deployment="echo"}',
      '{organization!="globex"}',
    ];
    for (const match of matches) {
      const text = await federate(globexToken, match);
      expect(text).not.toContain("acme");
      expect(text).not.toContain('"echo"');
    }
    expect(await federate(globexToken)).toContain('deployment="secret-service"');
    expect(await federate(acmeToken)).not.toContain("globex");
    expect(await federate(acmeToken, '{deployment="secret-service"}')).toBe("");
    expect(await federate(acmeToken, '{__name__=~"process_.*"}')).toBe("");
  });

  it("shows a deployment's own on its host, and the node's to the operator", async () => {
    const own = await world.call("echo", "/metrics");
    expect(own.status).toBe(200);
    expect(own.text).toContain('deployment="echo"');
    expect(own.text).not.toMatch(/globex|process_|tessera_storage/);
    const node = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
    const text = await node.text();
    expect(node.status).toBe(200);
    for (const name of ["token_verifications_total", "storage_operation_seconds_count"]) {
      expect(text).toMatch(new RegExp(`^tessera_${name}\\{`, "m"));
    }
    expect(text).toContain('organization="globex"');
    expect((await fetch(`${world.platform.url}/metrics`)).status).toBe(401);
    // No endpoint has this name.
    const called = await world.call("echo", "/metrics", { body: {} });
    expect([called.status, called.headers.allow]).toEqual([405, "GET"]);
  });

  it("answers 400 to 10,000 selectors", async () => {
    const url = `${world.platform.url}/federate?${"match[]=up&".repeat(10_000)}`;
    expect((await fetch(url, { headers: bearer(acmeToken) })).status).toBe(400);
  });

  it("refuses a monitoring token when the operator has stopped it", async () => {
    await using operator = await administration(world.folder);
    await operator.setMonitoring("acme", false);
    const url = `${world.platform.url}/federate?match[]=up`;
    for (;;) {
      const { status } = await fetch(url, { headers: bearer(acmeToken) });
      if (status === 401) {
        break;
      }
      expect(status).toBe(200);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect((await fetch(url, { headers: bearer(globexToken) })).status).toBe(200);
  });
});
