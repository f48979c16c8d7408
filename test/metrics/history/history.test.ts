import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEVELS } from "../../../src/metrics/history/range.ts";
import type { MetricsStorage } from "../../../src/storage/metrics/metrics.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { ask, Clock, MeasuringNode, TICK_MS, valuesOf, wholeOf } from "./node.ts";

/** The beginning of an hour. */
const BEGAN_MS = 1_800_000_000_000;

const CALL = { protocol: "http", seconds: 0.02 } as const;

describe.each(DATABASES)("metrics over time on $database", ({ open }) => {
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
    const of = { clock, organizationId: `history-${process.pid}-${organizations}` };
    return { clock, of, node: new MeasuringNode(metrics, of) };
  }

  it("shows rates, percentiles and gauges in steps, and gaps where nothing was measured", async () => {
    const { clock, of, node } = begun();
    const digits = node.deployment("digits");
    for (let call = 0; call < 30; call += 1) {
      digits.requestFinished("read", { ...CALL, code: call < 10 ? "internal" : "ok" });
    }
    digits.workersObserved({ up: 2, starting: 1, desired: 3, cpuSeconds: 5, memoryBytes: 1_000 });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    digits.requestFinished("read", { ...CALL, code: "not_found" });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    const answer = await ask(metrics, of, { deploymentId: "digits" });
    expect(answer).toMatchObject({ fromMs: BEGAN_MS - 40_000, stepMs: TICK_MS, points: 6 });
    const gap = Number.NaN;
    expect(valuesOf(answer, "calls")).toEqual([gap, gap, gap, gap, 3, 0.1]);
    expect(valuesOf(answer, "call_errors")).toEqual([gap, gap, gap, gap, 1, 0.1]);
    expect(valuesOf(answer, "call_server_errors")).toEqual([gap, gap, gap, gap, 1, 0]);
    expect(valuesOf(answer, "call_seconds", "p50")?.at(-1)).toBeCloseTo(0.0175);
    expect(valuesOf(answer, "queue_seconds", "p99")).toEqual(Array(6).fill(gap));
    expect(wholeOf(answer, "calls")).toBe(1.55);
    expect(wholeOf(answer, "workers")).toBe(2);
    expect(wholeOf(answer, "queue_seconds", "p99")).toBe(gap);
    expect(valuesOf(answer, "workers")).toEqual([gap, gap, gap, gap, 2, 2]);
    expect(valuesOf(answer, "workers_starting")?.at(-1)).toBe(1);
    expect(valuesOf(answer, "workers_desired")?.at(-1)).toBe(3);
    expect(valuesOf(answer, "worker_cpu")).toEqual([gap, gap, gap, gap, 0.5, 0]);
    expect(node.errors).toEqual([]);
  });

  it("has the percentiles of all that was measured, which are not those of any step", async () => {
    const { clock, of, node } = begun();
    const digits = node.deployment("digits");
    for (const [calls, seconds] of [
      [94, 0.02],
      [6, 20],
    ] as const) {
      for (let call = 0; call < calls; call += 1) {
        digits.requestFinished("read", { protocol: "http", seconds, code: "ok" });
      }
      clock.nowMs += TICK_MS;
      await node.recorder.record();
    }
    const answer = await ask(metrics, of, { deploymentId: "digits", measures: ["call_seconds"] });
    expect(wholeOf(answer, "call_seconds", "p50")).toBeCloseTo(0.018, 3);
    expect(valuesOf(answer, "call_seconds", "p95")?.slice(-2)).toEqual([0.02425, 29]);
    expect(wholeOf(answer, "call_seconds", "p95")).toBeCloseTo(13.3333, 3);
  });

  it("sums over nodes, but not what all of them show alike", async () => {
    const { clock, of, node } = begun();
    const other = new MeasuringNode(metrics, of);
    for (const each of [node, other]) {
      const digits = each.deployment("digits");
      digits.requestFinished("read", { ...CALL, code: "ok" });
      digits.queueObserved("train", { queued: 7, running: 3, oldestSeconds: 4 });
      digits.workersObserved({ up: 2, starting: 0, desired: 0, cpuSeconds: 0, memoryBytes: 10 });
    }
    clock.nowMs += TICK_MS;
    await Promise.all([node.recorder.record(), other.recorder.record()]);
    const answer = await ask(metrics, of, { deploymentId: "digits" });
    expect(valuesOf(answer, "calls")?.at(-1)).toBeCloseTo(0.2);
    expect(valuesOf(answer, "workers")?.at(-1)).toBe(4);
    expect(valuesOf(answer, "worker_memory_bytes")?.at(-1)).toBe(20);
    expect(valuesOf(answer, "tasks_queued")?.at(-1)).toBe(7);
    expect(valuesOf(answer, "oldest_queued_seconds")?.at(-1)).toBe(4);
  });

  it("sums the deployments of an organization, and no other's", async () => {
    const { clock, of, node } = begun();
    const other = begun();
    for (const name of ["digits", "letters"]) {
      const deployment = node.deployment(name);
      deployment.requestFinished("read", { ...CALL, code: "ok" });
      deployment.queueObserved("train", { queued: 7, running: 3, oldestSeconds: 4 });
    }
    other.node.deployment("digits").requestFinished("read", { ...CALL, code: "ok" });
    clock.nowMs += TICK_MS;
    other.clock.nowMs += TICK_MS;
    await node.recorder.record();
    await other.node.recorder.record();
    const answer = await ask(metrics, of);
    expect(valuesOf(answer, "calls")?.at(-1)).toBeCloseTo(0.2);
    expect(valuesOf(answer, "tasks_queued")?.at(-1)).toBe(14);
    expect(valuesOf(answer, "oldest_queued_seconds")?.at(-1)).toBe(4);
    const theirs = await ask(metrics, other.of, { measures: ["calls"] });
    expect(valuesOf(theirs, "calls")?.at(-1)).toBeCloseTo(0.1);
  });

  it("loses no call in a restart, and counts no worker twice", async () => {
    const { clock, of, node } = begun();
    const before = node.deployment("digits");
    before.requestFinished("read", { ...CALL, code: "ok" });
    before.workersObserved({ up: 2, starting: 0, desired: 0, cpuSeconds: 0, memoryBytes: 10 });
    clock.nowMs += 4_000;
    await node[Symbol.asyncDispose]();
    const restarted = new MeasuringNode(metrics, of);
    const after = restarted.deployment("digits");
    after.requestFinished("read", { ...CALL, code: "ok" });
    after.workersObserved({ up: 2, starting: 0, desired: 0, cpuSeconds: 0, memoryBytes: 10 });
    clock.nowMs += 6_000;
    await restarted.recorder.record();
    for (let tick = 0; tick < 5; tick += 1) {
      clock.nowMs += TICK_MS;
      await restarted.recorder.record();
    }
    const measures = ["calls", "workers"] as const;
    const fine = await ask(metrics, of, { deploymentId: "digits", measures });
    expect(valuesOf(fine, "calls")?.[0]).toBeCloseTo(0.2);
    expect(valuesOf(fine, "workers")).toEqual(Array(6).fill(2));
    const coarse = await ask(metrics, of, { deploymentId: "digits", measures, maxPoints: 1 });
    expect(valuesOf(coarse, "calls")?.[0]).toBeCloseTo(2 / 60);
    expect(valuesOf(coarse, "workers")).toEqual([2]);
  });

  it("shows the same at every resolution", async () => {
    const { clock, of, node } = begun();
    const digits = node.deployment("digits");
    for (let tick = 0; tick < 60; tick += 1) {
      digits.taskFinished("train", "success", 2);
      digits.queueObserved("train", { queued: tick % 2, running: 0, oldestSeconds: 0 });
      clock.nowMs += TICK_MS;
      await node.recorder.record();
    }
    const lengthMs = 600_000;
    for (const maxPoints of [60, 10, 1]) {
      const asked = { deploymentId: "digits", lengthMs, maxPoints } as const;
      const answer = await ask(metrics, of, asked);
      expect(answer.points).toBe(maxPoints);
      const rates = valuesOf(answer, "tasks_succeeded") ?? [];
      expect(rates.every((rate) => Math.abs(rate - 0.1) < 1e-9)).toBe(true);
      const queued = valuesOf(answer, "tasks_queued") ?? [];
      expect(queued.reduce((sum, each) => sum + each, 0) / maxPoints).toBeCloseTo(0.5);
      expect(valuesOf(answer, "run_seconds", "p50")?.[0]).toBeCloseTo(3);
    }
  });

  it("writes that a deployment rests once, and then no more", async () => {
    const { clock, of, node } = begun();
    const digits = node.deployment("digits");
    digits.workersObserved({ up: 1, starting: 0, desired: 0, cpuSeconds: 0, memoryBytes: 10 });
    clock.nowMs += TICK_MS;
    await node.recorder.record();
    digits.workersObserved({ up: 0, starting: 0, desired: 0, cpuSeconds: 0, memoryBytes: 0 });
    for (let tick = 0; tick < 3; tick += 1) {
      clock.nowMs += TICK_MS;
      await node.recorder.record();
    }
    const asked = { deploymentId: "digits", measures: ["workers"], lengthMs: 40_000 } as const;
    const answer = await ask(metrics, of, asked);
    expect(valuesOf(answer, "workers")).toEqual([1, 0, Number.NaN, Number.NaN]);
  });

  it("stores what could not be stored once the database answers", async () => {
    const { clock, of } = begun();
    let answers = false;
    const failing: MetricsStorage = {
      ...metrics,
      putHistory: (rows) => (answers ? metrics.putHistory(rows) : Promise.reject(new Error("no"))),
    };
    const node = new MeasuringNode(failing, of);
    const digits = node.deployment("digits");
    // Long enough that coarser rows wait, and are written anew meanwhile.
    for (let tick = 0; tick < 18; tick += 1) {
      digits.requestFinished("read", { ...CALL, code: "ok" });
      clock.nowMs += TICK_MS;
      await node.recorder.record();
    }
    expect(node.errors).toHaveLength(18);
    answers = true;
    clock.nowMs += TICK_MS;
    await node.recorder.record(true);
    expect(node.errors).toHaveLength(18);
    const asked = { deploymentId: "digits", measures: ["calls"], lengthMs: 190_000 } as const;
    expect(valuesOf(await ask(metrics, of, asked), "calls")).toEqual([...Array(18).fill(0.1), 0]);
    clock.nowMs += 420_000;
    const coarse = { ...asked, lengthMs: 600_000, maxPoints: 1 };
    expect(valuesOf(await ask(metrics, of, coarse), "calls")?.[0]).toBeCloseTo(18 / 600);
  });

  it("deletes what is older than it is kept", async () => {
    const { clock, of, node } = begun();
    const { organizationId } = of;
    const row = {
      organizationId,
      deploymentId: "digits",
      recorder: "r",
      platform: "{}",
      custom: "",
    };
    clock.nowMs += 30 * 24 * 3_600_000;
    const rows = LEVELS.flatMap(({ resolutionMs, keptMs }) =>
      [keptMs + 3_600_000, keptMs - 3_600_000 / 2].map((ageMs) => ({
        ...row,
        resolutionMs,
        beganAtMs: clock.nowMs - ageMs,
      })),
    );
    await metrics.putHistory({ rows });
    await node.recorder.prune();
    for (const { resolutionMs } of LEVELS) {
      const question = { organizationId, deploymentId: "digits", resolutionMs, withCustom: false };
      const range = { fromMs: 0, toMs: clock.nowMs, limit: 10 };
      expect(await metrics.readHistory({ ...question, ...range })).toHaveLength(1);
    }
  });
});
