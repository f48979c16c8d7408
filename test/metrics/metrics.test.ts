import { describe, expect, it } from "vitest";
import { METRICS } from "../../src/metrics/declarations.ts";
import { expose } from "../../src/metrics/exposition.ts";
import { LABEL_NAME } from "../../src/metrics/labels.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { whole } from "./fixture.ts";

const DIGITS = { organizationId: "1", organization: "acme", deployment: "digits" };
const OTHER = { organizationId: "2", organization: "globex", deployment: "digits" };

function counting(maxSeries?: number) {
  let nowMs = 1_000_000;
  const metrics = new Metrics({
    node: "n1",
    now: () => nowMs,
    ...(maxSeries !== undefined && { maxSeries }),
  });
  return {
    metrics,
    advance(ms: number) {
      nowMs += ms;
    },
    /** The lines of a metric, without its heading. */
    async lines(name: string): Promise<string[]> {
      const text = await whole(expose(metrics));
      return text.split("\n").filter((line) => line.startsWith(name));
    },
  };
}

describe("a declaration", () => {
  it("has a name as Prometheus wants it, with its unit and `_total` for what is counted", () => {
    for (const { name, kind, unit, help, labels } of Object.values(METRICS)) {
      // The data model of Prometheus.
      expect(name).toMatch(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/);
      expect(name.endsWith("_total")).toBe(kind === "counter");
      const stem = name.replace(/_total$/, "");
      expect(unit === "none" || stem.endsWith(`_${unit}`)).toBe(true);
      expect(help).toMatch(/^[A-Z].*[^.]$/);
      expect(labels.every((label) => LABEL_NAME.test(label))).toBe(true);
    }
  });

  it("stands there once", () => {
    const names = Object.values(METRICS).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("counting", () => {
  it("tells a hundred routes of a mounted server apart, and no more", () => {
    const { metrics } = counting();
    const shop = metrics.deployment(DIGITS);
    const named = Array.from({ length: 150 }, (_, n) => shop.routeOf("/ui", `/ui/${n}`));
    expect(new Set(named).size).toBe(101);
    expect([named[0], named[149]]).toEqual(["/ui/0", "/ui"]);
    expect(shop.routeOf("/ui", "/ui/99")).toBe("/ui/99");
    expect(shop.routeOf("/", "/other")).toBe("/other");
    expect(shop.routeOf("/", undefined)).toBe("/");
  });

  it("tells deployments, endpoints, protocols and codes apart", async () => {
    const { metrics, lines } = counting();
    const digits = metrics.deployment(DIGITS);
    digits.requestFinished("classify", { protocol: "http", code: "ok", seconds: 0.02 });
    digits.requestFinished("classify", { protocol: "http", code: "ok", seconds: 0.3 });
    digits.requestFinished("classify", { protocol: "grpc", code: "not_found", seconds: 0.001 });
    metrics
      .deployment(OTHER)
      .requestFinished("classify", { protocol: "http", code: "ok", seconds: 1 });
    expect(await lines("tessera_requests_total")).toEqual([
      'tessera_requests_total{code="ok",deployment="digits",endpoint="classify",node="n1",organization="acme",protocol="http"} 2',
      'tessera_requests_total{code="not_found",deployment="digits",endpoint="classify",node="n1",organization="acme",protocol="grpc"} 1',
      'tessera_requests_total{code="ok",deployment="digits",endpoint="classify",node="n1",organization="globex",protocol="http"} 1',
    ]);
  });

  it("puts what takes long into buckets that include the smaller ones", async () => {
    const { metrics, lines } = counting();
    const digits = metrics.deployment(DIGITS);
    for (const seconds of [0.0005, 0.001, 0.3, 61]) {
      digits.requestFinished("classify", { protocol: "http", code: "ok", seconds });
    }
    const values = (await lines("tessera_request_duration_seconds")).map((line) => {
      const [, part, le, value] = /_seconds_(\w+)\{.*?(?:le="(.*?)".*)?\} (\S+)$/.exec(line) ?? [];
      return [part, le, value].filter(Boolean).join(" ");
    });
    expect(values.slice(0, 3)).toEqual(["bucket 0.001 2", "bucket 0.0025 2", "bucket 0.005 2"]);
    expect(values.slice(-4)).toEqual(["bucket 60 3", "bucket +Inf 4", "sum 61.3015", "count 4"]);
  });

  it("counts a value that no list has as other", async () => {
    const { metrics, lines } = counting();
    const digits = metrics.deployment(DIGITS);
    for (const code of ["strange", "stranger", "ok"]) {
      digits.requestFinished("classify", { protocol: "http", code, seconds: 0 });
    }
    const counted = (await lines("tessera_requests_total")).map((line) =>
      line.replace(/.*code="(\w+)".* /, "$1 "),
    );
    expect(counted).toEqual(["other 2", "ok 1"]);
  });

  it("stops at so many series of an organization, and counts what it did not count", async () => {
    const { metrics, lines } = counting(3);
    const digits = metrics.deployment(DIGITS);
    for (let index = 0; index < 5; index += 1) {
      digits.taskSubmitted(`endpoint-${index}`);
    }
    digits.taskSubmitted("endpoint-0");
    metrics.deployment(OTHER).taskSubmitted("classify");
    expect(await lines("tessera_tasks_submitted_total")).toHaveLength(4);
    expect(await lines("tessera_series_dropped_total")).toEqual([
      'tessera_series_dropped_total{metric="tessera_tasks_submitted_total",node="n1",organization="acme"} 2',
    ]);
  });

  it("gives a name to the deployment that has it now, whenever the one before is ended", async () => {
    const { metrics, lines } = counting();
    const before = metrics.deployment({ ...DIGITS, deploymentId: "1" });
    before.taskSubmitted("run");
    const now = metrics.deployment({ ...DIGITS, deploymentId: "2" });
    now.taskSubmitted("classify");
    before.taskSubmitted("run");
    before.end();
    now.taskSubmitted("classify");
    expect(metrics.byId("1")).toBeUndefined();
    expect(metrics.byId("2")).toBe(now);
    expect(await lines("tessera_tasks_submitted_total")).toEqual([
      'tessera_tasks_submitted_total{deployment="digits",endpoint="classify",node="n1",organization="acme"} 2',
    ]);
  });

  it("forgets a deployment that is gone at once, and nothing else", async () => {
    const { metrics, lines } = counting();
    const digits = metrics.deployment(DIGITS);
    const summarizer = metrics.deployment({ ...DIGITS, deployment: "summarizer" });
    for (const deployment of [digits, summarizer]) {
      deployment.taskSubmitted("run");
      deployment.taskStarted("run", 0.5);
    }
    digits.end();
    digits.taskSubmitted("run");
    expect(await lines("tessera_tasks_submitted_total")).toEqual([
      'tessera_tasks_submitted_total{deployment="summarizer",endpoint="run",node="n1",organization="acme"} 1',
    ]);
    const waits = await lines("tessera_task_queue_wait_seconds");
    expect(waits.filter((line) => line.includes("digits"))).toEqual([]);
    expect(waits.length).toBeGreaterThan(10);
    // Coming again, it begins at nothing.
    metrics.deployment(DIGITS).taskSubmitted("run");
    expect(await lines("tessera_tasks_submitted_total")).toHaveLength(2);
  });

  it("gives the room of an ended deployment to others", async () => {
    const { metrics, lines } = counting(2);
    for (let round = 0; round < 5; round += 1) {
      const deployment = metrics.deployment(DIGITS);
      deployment.taskSubmitted("one");
      deployment.taskSubmitted("two");
      deployment.end();
    }
    expect(await lines("tessera_series_dropped_total")).toEqual([]);
  });

  it("never lets a counter go down, also when what it follows begins anew", async () => {
    const { metrics, lines } = counting();
    const digits = metrics.deployment(DIGITS);
    digits.workersObserved({
      up: 2,
      starting: 0,
      desired: 0,
      cpuSeconds: 10,
      memoryBytes: 2 ** 30,
    });
    digits.workersObserved({ up: 1, starting: 0, desired: 0, cpuSeconds: 3, memoryBytes: 2 ** 20 });
    expect((await lines("tessera_worker_cpu_seconds_total"))[0]).toMatch(/ 10$/);
    expect((await lines("tessera_workers"))[0]).toMatch(/ 1$/);
  });
});

describe("/metrics of a node", () => {
  it("has help and type before each metric, and only for those that there are", async () => {
    const { metrics } = counting();
    metrics.tokenVerified("valid");
    const text = await whole(expose(metrics));
    expect(text).toContain(
      "# HELP tessera_token_verifications_total Tokens that were looked at\n" +
        "# TYPE tessera_token_verifications_total counter\n" +
        'tessera_token_verifications_total{node="n1",verification="valid"} 1\n',
    );
    expect(text).not.toContain("tessera_requests_total");
  });

  it("shows one deployment's series when asked for it", async () => {
    const { metrics } = counting();
    for (const measured of [DIGITS, OTHER, { ...DIGITS, deployment: "summarizer" }]) {
      metrics.deployment(measured).taskSubmitted("run");
    }
    metrics.tokenVerified("valid");
    const text = await whole(expose(metrics, { organizationId: "1", deployment: "digits" }));
    expect(text.split("\n").filter((line) => !line.startsWith("#") && line !== "")).toEqual([
      'tessera_tasks_submitted_total{deployment="digits",endpoint="run",node="n1",organization="acme"} 1',
    ]);
  });

  it("is what promtool calls good", async () => {
    const { spawnSync } = await import("node:child_process");
    const { metrics } = counting();
    const digits = metrics.deployment(DIGITS);
    digits.requestFinished("classify", { protocol: "http", code: "ok", seconds: 0.02 });
    digits.requestFinished("other", { protocol: "http", code: "ok", seconds: 0.02 });
    digits.taskSubmitted("run");
    digits.taskStarted("run", 1);
    digits.taskFinished("run", "success", 2);
    digits.queueObserved("run", { queued: 1, running: 0, oldestSeconds: 2 });
    digits.workersObserved({ up: 1, starting: 0, desired: 0, cpuSeconds: 1, memoryBytes: 2 });
    digits.workerReplaced("crashed");
    digits.egressDecided("allowed");
    const delaySeconds = { "50": 0.001, "99": 0.01, "100": 0.02 };
    metrics.processObserved({ cpuSeconds: 1, memoryBytes: 2, delaySeconds });
    metrics.tokenVerified("invalid");
    metrics.storageOperationFinished({ operation: "submitTasks", result: "ok", seconds: 0.01 });
    const input = await whole(expose(metrics));
    const { status, stdout, stderr, error } = spawnSync("promtool", ["check", "metrics"], {
      input,
      encoding: "utf8",
    });
    if (error) {
      throw new Error("promtool is not on the PATH: apt-get install prometheus", { cause: error });
    }
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });
});
