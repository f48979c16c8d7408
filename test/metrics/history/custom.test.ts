import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CustomDeclaration } from "../../../src/metrics/custom-metric.ts";
import type { HistoryAnswer } from "../../../src/metrics/history/history.ts";
import type { MetricsStorage } from "../../../src/storage/metrics/metrics.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { type Asked, ask, Clock, MeasuringNode, TICK_MS } from "./node.ts";

const BEGAN_MS = 1_800_000_000_000;

const TOKENS: CustomDeclaration = {
  name: "tokens_total",
  kind: "counter",
  help: "",
  labels: ["model"],
};
const LOADED: CustomDeclaration = {
  name: "models_loaded",
  kind: "gauge",
  help: "",
  labels: [],
  aggregator: "max",
};
const SCORE: CustomDeclaration = {
  name: "score",
  kind: "histogram",
  help: "",
  labels: [],
  buckets: [1, 2],
};

describe.each(DATABASES)("a service's own metrics over time on $database", ({ open }) => {
  let storage: Storage;
  let metrics: MetricsStorage;
  let organizations = 0;

  beforeAll(async () => {
    storage = await open();
    metrics = storage.metrics;
  });
  afterAll(() => storage[Symbol.asyncDispose]());

  function begun() {
    organizations += 1;
    const clock = new Clock(BEGAN_MS);
    const of = { clock, organizationId: `custom-${process.pid}-${organizations}` };
    const node = new MeasuringNode(metrics, of);
    const { custom } = node.deployment("digits");
    custom.declare([TOKENS, LOADED, SCORE]);
    return { clock, of, node, custom };
  }

  type Of = ReturnType<typeof begun>["of"];

  const read = (of: Of, selector: string, more: Asked = {}): Promise<HistoryAnswer> =>
    ask(metrics, of, {
      deploymentId: "digits",
      measures: [],
      selectors: [selector],
      lengthMs: 20_000,
      ...more,
    });

  it("are rates, averages and percentiles with their labels", async () => {
    const { clock, of, node, custom } = begun();
    custom.count("w1", TOKENS, { endpoint: "read", labels: ["small"], value: 30 });
    custom.count("w1", TOKENS, { endpoint: "read", labels: ["large"], value: 10 });
    custom.count("w1", LOADED, { labels: [], value: 3 });
    custom.count("w1", SCORE, { endpoint: "read", labels: [], value: 1.5, counts: [0, 1, 0] });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    custom.count("w1", TOKENS, { endpoint: "read", labels: ["small"], value: 10 });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const { series, truncated } = await read(of, '{__name__=~".+"}');
    expect(truncated).toBe(false);
    const shown = series.map(({ name, statistic, labels, values }) => [
      name,
      statistic,
      labels,
      values,
    ]);
    expect(shown).toEqual([
      ["models_loaded", "average", {}, [3, 3]],
      ["score", "p50", { endpoint: "read" }, [1.5, Number.NaN]],
      ["score", "p95", { endpoint: "read" }, [1.95, Number.NaN]],
      ["score", "p99", { endpoint: "read" }, [1.99, Number.NaN]],
      ["tokens_total", "rate", { endpoint: "read", model: "large" }, [1, 0]],
      ["tokens_total", "rate", { endpoint: "read", model: "small" }, [3, 1]],
    ]);
  });

  it("have six digits, so that a day of them is not mostly noise", async () => {
    const { clock, of, node, custom } = begun();
    custom.count("w1", SCORE, { endpoint: "read", labels: [], value: 15, counts: [3, 7, 0] });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const { series } = await read(of, "score", { lengthMs: TICK_MS });
    expect(series.map(({ values }) => values)).toEqual([[1.28571], [1.92857], [1.98571]]);
  });

  it("are chosen by name and labels", async () => {
    const { clock, of, node, custom } = begun();
    custom.count("w1", TOKENS, { endpoint: "read", labels: ["small"], value: 30 });
    custom.count("w1", TOKENS, { endpoint: "read", labels: ["large"], value: 10 });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const { series } = await read(of, 'tokens_total{model!="small"}');
    expect(series.map(({ labels }) => labels)).toEqual([{ endpoint: "read", model: "large" }]);
    expect((await read(of, "calls")).series).toEqual([]);
    expect((await read(of, "tokens_total", { deploymentId: "letters" })).series).toEqual([]);
  });

  it("are joined over nodes as they are declared", async () => {
    const { clock, of, node, custom } = begun();
    const other = new MeasuringNode(metrics, of);
    const theirs = other.deployment("digits").custom;
    theirs.declare([TOKENS, LOADED, SCORE]);
    for (const [one, value] of [
      [custom, 3],
      [theirs, 5],
    ] as const) {
      one.count("w1", LOADED, { labels: [], value });
      one.count("w1", TOKENS, { endpoint: "read", labels: ["small"], value });
    }
    clock.nowMs += TICK_MS;
    await Promise.all([node.recorder.record(), other.recorder.record()]);
    const { series } = await read(of, '{__name__=~".+"}', { lengthMs: TICK_MS });
    expect(series.map(({ name, values }) => [name, ...values])).toEqual([
      ["models_loaded", 5],
      ["tokens_total", 0.8],
    ]);
  });

  it("are kept up to a number of series, of each metric in turns, and the others are counted", async () => {
    const { clock, of, node, custom } = begun();
    for (let index = 0; index < 150; index += 1) {
      const labels = [`model-${index}`];
      custom.count("w1", TOKENS, { endpoint: "read", labels, value: 1 });
    }
    custom.count("w1", LOADED, { labels: [], value: 3 });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const { series, truncated, leftOut } = await read(of, '{__name__=~".+"}');
    expect(series).toHaveLength(100);
    expect(series.filter(({ name }) => name === "models_loaded")).toHaveLength(1);
    expect(truncated).toBe(false);
    expect([...leftOut]).toEqual([["tokens_total", 51]]);
    expect((await read(of, "models_loaded")).leftOut.size).toBe(0);
    clock.nowMs += 6 * TICK_MS;
    await node.recorder.record(true);
    const minutes = await read(of, "tokens_total", { lengthMs: 120_000, maxPoints: 2 });
    expect(minutes.stepMs).toBe(60_000);
    expect([...minutes.leftOut]).toEqual([["tokens_total", 51]]);
  });

  it("come before what libraries and servers expose, which has the room that is left", async () => {
    const { clock, of, node, custom } = begun();
    for (let index = 0; index < 90; index += 1) {
      custom.count("w1", TOKENS, { endpoint: "read", labels: [`model-${index}`], value: 1 });
    }
    const expose = (name: string, kind: "counter" | "gauge", series: number) =>
      custom.countExposed("w1", {
        name,
        kind,
        help: "",
        changes: Array.from({ length: series }, (_, index) => ({
          labels: ["engine", `${index}`],
          value: 20,
        })),
      });
    expose("vllm:requests_total", "counter", 30);
    expose("vllm:cache_ratio", "gauge", 1);
    custom.countExposed("w1", {
      name: "read_seconds",
      kind: "histogram",
      help: "",
      buckets: [1, 2],
      changes: [{ labels: [], value: 15, counts: [0, 10, 0] }],
    });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const { series, leftOut } = await read(of, '{__name__=~".+"}', { lengthMs: TICK_MS });
    const others = series.filter(({ name }) => name !== "tokens_total");
    expect(series).toHaveLength(100 + 2);
    expect(
      others.slice(0, 5).map(({ name, statistic, labels, values }) => {
        return [name, statistic, labels, ...values];
      }),
    ).toEqual([
      ["read_seconds", "p50", {}, 1.5],
      ["read_seconds", "p95", {}, 1.95],
      ["read_seconds", "p99", {}, 1.99],
      ["vllm:cache_ratio", "average", { engine: "0" }, 20],
      ["vllm:requests_total", "rate", { engine: "0" }, 2],
    ]);
    expect([...leftOut]).toEqual([["vllm:requests_total", 22]]);
  });

  it("take no more room for what is exposed, however it is described", async () => {
    const { clock, of, node, custom } = begun();
    for (let index = 0; index < 200; index += 1) {
      const name = `${"n".repeat(150)}_${index}`;
      const labels = [`label_${index}`, "x".repeat(100)];
      custom.countExposed("w1", { name, kind: "gauge", help: "", changes: [{ labels, value: 1 }] });
    }
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const question = { organizationId: of.organizationId, deploymentId: "digits", limit: 10 };
    const range = { resolutionMs: TICK_MS, fromMs: BEGAN_MS, toMs: clock.nowMs, withCustom: true };
    const [row] = await metrics.readHistory({ ...question, ...range });
    expect(row?.custom.length).toBeGreaterThan(10_000);
    expect(row?.custom.length).toBeLessThan(20_000);
  });

  it("are left out of an answer when nodes together have more series than it holds", async () => {
    const { clock, of, node, custom } = begun();
    const other = new MeasuringNode(metrics, of);
    const theirs = other.deployment("digits").custom;
    theirs.declare([TOKENS]);
    for (const [one, model] of [
      [custom, "ours"],
      [theirs, "theirs"],
    ] as const) {
      for (let index = 0; index < 60; index += 1) {
        one.count("w1", TOKENS, { endpoint: "read", labels: [`${model}-${index}`], value: 1 });
      }
    }
    clock.nowMs += TICK_MS;
    await Promise.all([node.recorder.record(), other.recorder.record()]);
    const { series, truncated, leftOut } = await read(of, "tokens_total");
    expect(series).toHaveLength(100);
    expect(truncated).toBe(true);
    expect([...leftOut]).toEqual([["tokens_total", 20]]);
  });

  it("take little room, however long their labels are", async () => {
    const { clock, of, node, custom } = begun();
    for (let index = 0; index < 100; index += 1) {
      const labels = [`${index} ${"x".repeat(190)}`];
      custom.count("w1", TOKENS, { endpoint: "read", labels, value: 1 });
    }
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const question = { organizationId: of.organizationId, deploymentId: "digits", limit: 10 };
    const range = { resolutionMs: TICK_MS, fromMs: BEGAN_MS, toMs: clock.nowMs, withCustom: true };
    const [row] = await metrics.readHistory({ ...question, ...range });
    expect(row?.custom.length).toBeGreaterThan(10_000);
    expect(row?.custom.length).toBeLessThan(20_000);
  });
});
