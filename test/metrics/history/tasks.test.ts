import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METRICS } from "../../../src/metrics/declarations.ts";
import { KeptHistory, stretchesOf } from "../../../src/metrics/history/kept.ts";
import { percentile } from "../../../src/metrics/history/percentile.ts";
import { readTally, type TaskSums, TaskTally } from "../../../src/metrics/history/task-tally.ts";
import type { MetricsStorage } from "../../../src/storage/metrics/metrics.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { Clock, MeasuringNode, TICK_MS } from "./node.ts";

/** The beginning of an hour. */
const BEGAN_MS = 1_800_000_000_000;
const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];

describe.each(DATABASES)("tasks of an organization over time on $database", ({ open }) => {
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
    const of = { clock, organizationId: `tasks-${process.pid}-${organizations}` };
    const node = new MeasuringNode(metrics, of);
    const tick = async (...nodes: MeasuringNode[]) => {
      clock.nowMs += TICK_MS;
      await Promise.all([node, ...nodes].map((one) => one.recorder.record()));
      expect(node.errors).toEqual([]);
    };
    const tally = async (windowMs = HOUR_MS) => {
      const { organizationId } = of;
      const nowMs = clock.nowMs + 2_000;
      return new KeptHistory(metrics).tasks({ organizationId, windowMs, nowMs });
    };
    const finished = async (windowMs?: number) => {
      const { tally: found } = await tally(windowMs);
      return found.of("digits").get("train")?.succeeded ?? 0;
    };
    return { clock, of, node, tick, tally, finished };
  }

  it("are counted by deployment and endpoint, with how long they waited and ran", async () => {
    const { clock, of, node, tick, tally } = begun();
    const other = new MeasuringNode(metrics, of);
    for (const each of [node, other]) {
      const digits = each.deployment("digits");
      digits.taskStarted("train", 3);
      digits.taskFinished("train", "retried", 20);
      digits.taskStarted("train", 0.02);
      digits.taskFinished("train", "success", 20);
      digits.taskFinished("evaluate", "expired", undefined);
      digits.taskFinished("evaluate", "failure", 0.3);
      digits.taskFinished("evaluate", "cancelled", undefined);
      digits.taskFinished("evaluate", "returned", 0.3);
    }
    other.deployment("letters").taskFinished("read", "success", 1);
    await tick(other);
    const { tally: found, fromMs, toMs } = await tally();
    expect([fromMs, toMs]).toEqual([clock.nowMs - HOUR_MS - TICK_MS, clock.nowMs]);
    expect([...found.of("digits").keys()].sort()).toEqual(["evaluate", "train"]);
    const { queueCounts, runCounts, ...train } = found.of("digits").get("train") as TaskSums;
    expect(train).toEqual({ succeeded: 2, failed: 0, cancelled: 0, retried: 2 });
    const sum = (counts: readonly number[]) => counts.reduce((all, each) => all + each, 0);
    expect([sum(queueCounts), sum(runCounts)]).toEqual([4, 4]);
    expect(percentile(0.5, runCounts, [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30])).toBeCloseTo(20);
    expect(found.of("digits").get("evaluate")).toMatchObject({ failed: 4, cancelled: 2 });
    expect(found.of("letters").get("read")?.succeeded).toBe(1);
    expect(found.of("unknown").size).toBe(0);
  });

  it("have calls beside them, by deployment and endpoint, with how many failed and how long they took", async () => {
    const { of, node, tick, tally } = begun();
    const other = new MeasuringNode(metrics, of);
    for (const each of [node, other]) {
      const digits = each.deployment("digits");
      for (const [endpoint, code, protocol] of [
        ["read", "ok", "http"],
        ["read", "not_found", "http"],
        ["read", "ok", "grpc"],
        ["write", "ok", "http"],
      ] as const) {
        digits.requestFinished(endpoint, { protocol, seconds: 0.02, code });
      }
    }
    await tick(other);
    const { tally: found } = await tally();
    const calls = found.callsOf("digits");
    expect([...calls.keys()].sort()).toEqual(["read", "write"]);
    const { counts = [], ...read } = calls.get("read") ?? {};
    expect(read).toEqual({ answered: 6, failed: 2, codes: new Map([["not_found", 2]]) });
    const { buckets } = METRICS.requestDuration;
    expect(percentile(0.5, counts, buckets)).toBeCloseTo(0.0175);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6);
    expect(calls.get("write")).toMatchObject({ answered: 2, failed: 0, codes: new Map() });
    expect(found.callsOf("letters").size).toBe(0);
    expect(found.of("digits").size).toBe(0);
  });

  it("have calls that an earlier version counted by deployment under no name", () => {
    const tally = new TaskTally();
    readTally('[["d","",[0,0,0,0,7,2],[],[]],["d","train",[3,0,0,0],[],[]]]', tally);
    expect([...tally.callsOf("d")]).toEqual([
      ["", { answered: 7, failed: 2, codes: new Map(), counts: [] }],
    ]);
    expect([...tally.of("d").keys()]).toEqual(["train"]);
  });

  it("are each counted once, whichever resolutions cover the window", async () => {
    const { clock, node, tick, finished } = begun();
    const digits = node.deployment("digits");
    // Once in ten seconds, for seventy minutes and forty seconds.
    const ticks = 70 * 6 + 4;
    for (let at = 0; at < ticks; at += 1) {
      digits.taskFinished("train", "success", 1);
      await tick();
    }
    expect(clock.nowMs % MINUTE_MS).toBe(40_000);
    expect(await finished(24 * HOUR_MS)).toBe(ticks);
    // It begins with a whole minute; beyond an hour with whole ten minutes.
    expect(await finished(MINUTE_MS)).toBe(6 + 4);
    expect(await finished(HOUR_MS)).toBe(60 * 6 + 4);
    expect(await finished(HOUR_MS + MINUTE_MS)).toBe(70 * 6 + 4);
    clock.nowMs += TICK_MS + 9 * MINUTE_MS;
    await tick();
    expect(await finished(HOUR_MS)).toBe(50 * 6 + 4);
  });

  it("are read with few rows, however long the window and however many tasks", () => {
    const rows = (windowMs: number) =>
      stretchesOf({ windowMs, nowMs: BEGAN_MS + HOUR_MS - 1_000 }).reduce(
        (sum, { fromMs, toMs, resolutionMs }) => sum + (toMs - fromMs) / resolutionMs,
        0,
      );
    expect(rows(MINUTE_MS)).toBe(1 + 5);
    expect(rows(HOUR_MS)).toBe(60 + 5);
    expect(rows(24 * HOUR_MS)).toBe(144 + 9 + 5);
  });

  it("are those of the organization, and are kept when its node is restarted", async () => {
    const { clock, of, node, finished } = begun();
    const stranger = begun();
    stranger.node.deployment("digits").taskFinished("train", "success", 1);
    await stranger.tick();
    node.deployment("digits").taskFinished("train", "success", 1);
    clock.nowMs += 4_000;
    await node[Symbol.asyncDispose]();
    const restarted = new MeasuringNode(metrics, of);
    restarted.deployment("digits").taskFinished("train", "success", 1);
    clock.nowMs += 6_000;
    await restarted.recorder.record();
    clock.nowMs += TICK_MS;
    expect(await finished()).toBe(2);
  });

  it("are summed under no name for endpoints beyond those that are told apart", async () => {
    const { node, tick, tally } = begun();
    for (let name = 0; name < 6; name += 1) {
      const deployment = node.deployment(`d${name}`);
      for (let endpoint = 0; endpoint < 100; endpoint += 1) {
        deployment.taskFinished(`e${endpoint}`, "success", undefined);
        deployment.requestFinished(`e${endpoint}`, { protocol: "http", seconds: 1, code: "ok" });
      }
    }
    await tick();
    const { tally: found } = await tally();
    expect([...found.of("d5")].map(([name, { succeeded }]) => [name, succeeded])).toEqual([
      ["", 100],
    ]);
    expect([...found.callsOf("d5")].map(([name, { answered }]) => [name, answered])).toEqual([
      ["", 100],
    ]);
    const all = [...found.entries()].reduce((sum, [, , { succeeded }]) => sum + succeeded, 0);
    expect(all).toBe(600);
  });
});
