import { expect, it } from "vitest";
import { Federation } from "../../src/metrics/federation.ts";
import { ForeignMetrics } from "../../src/metrics/foreign-samples.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { Publisher } from "../../src/metrics/publish.ts";
import type { MetricsStorage } from "../../src/storage/metrics/metrics.ts";
import { openSqlite } from "../storage/sqlite/databases.ts";
import { sampleLines, whole } from "./fixture.ts";
import { longestTurnMs } from "./turn.ts";

const ACME = { organizationId: "one", organization: "acme" };
const GLOBEX = { organizationId: "two", organization: "globex" };

/** A clock that only moves when a test says so. */
class Clock {
  nowMs = 1_000_000;
  readonly now = (): number => this.nowMs;
}

function node(name: string, storage: MetricsStorage, clock: Clock) {
  const { now } = clock;
  const errors: unknown[] = [];
  const onError = (err: unknown): void => void errors.push(err);
  const metrics = new Metrics({ node: name, now });
  const publisher = new Publisher({ metrics, storage, nodeId: name, now, onError });
  const foreign = new ForeignMetrics({ storage, nodeId: name, now, onError });
  const federation = new Federation({ metrics, foreign, now });
  return {
    metrics,
    publisher,
    errors,
    async text(match: string, whose = ACME): Promise<string> {
      return whole(await federation.answer({ ...whose, match: [match] }));
    },
    async lines(match: string, whose = ACME): Promise<string[]> {
      return sampleLines(await this.text(match, whose));
    },
  };
}

async function twoNodes() {
  const storage = await openSqlite(":memory:");
  const clock = new Clock();
  const [n1, n2] = [node("n1", storage.metrics, clock), node("n2", storage.metrics, clock)];
  for (const [name, { metrics }] of Object.entries({ n1, n2 })) {
    const deployment = metrics.deployment({ ...ACME, deployment: "digits" });
    deployment.taskSubmitted(`from-${name}`);
    deployment.queueObserved("run", { queued: 3, running: 1, oldestSeconds: 0.5 });
    metrics.deployment({ ...GLOBEX, deployment: "digits" }).taskSubmitted(`from-${name}`);
  }
  return { storage, clock, n1, n2, [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose]() };
}

const SUBMITTED = "tessera_tasks_submitted_total";
const line = (name: string, value = 1, organization = "acme") =>
  `${SUBMITTED}{deployment="digits",endpoint="from-${name}",node="${name}",organization="${organization}",instance=""} ${value}`;

it("any node answers for all, each for its own organization", async () => {
  await using nodes = await twoNodes();
  const { n1, n2 } = nodes;
  expect(await n1.lines(SUBMITTED)).toEqual([line("n1")]);
  await n1.publisher.publish();
  await n2.publisher.publish();
  expect(await n1.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
  expect(await n2.lines('{organization="acme"}', GLOBEX)).toEqual([]);
  expect(await n2.lines(SUBMITTED, GLOBEX)).toEqual([
    line("n1", 1, "globex"),
    line("n2", 1, "globex"),
  ]);
  expect([...n1.errors, ...n2.errors]).toEqual([]);
});

it("both answer the same histograms, with the time at which they were counted", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, clock } = nodes;
  const deployment = n1.metrics.deployment({ ...ACME, deployment: "digits" });
  deployment.taskFinished("run", "success", 0.3);
  const atFirst = await n1.text('tessera_task_run_seconds_bucket{node="n1"}');
  const gauge = await n1.text('tessera_queue_length{node="n1"}');
  await n1.publisher.publish();
  clock.nowMs += 4_000;
  expect(await n2.text('tessera_task_run_seconds_bucket{node="n1"}')).toBe(atFirst);
  expect(await n2.text('tessera_queue_length{node="n1"}')).toBe(gauge);
});

it("shows what was counted since, and what came and went", async () => {
  await using nodes = await twoNodes();
  const { n1, n2 } = nodes;
  const deployment = n1.metrics.deployment({ ...ACME, deployment: "digits" });
  await n1.publisher.publish();
  await n2.lines(SUBMITTED);
  deployment.taskSubmitted("from-n1");
  await n1.publisher.publish();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1", 2), line("n2")]);
  deployment.taskSubmitted("new");
  await n1.publisher.publish();
  expect(await n2.lines(SUBMITTED)).toHaveLength(3);
  deployment.end();
  await n1.publisher.publish();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n2")]);
});

it("leaves out a node that is gone: at once when it ended, soon when it fell", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, clock } = nodes;
  await n1.publisher.publish();
  await n2.publisher.publish();
  clock.nowMs += 20_000;
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
  clock.nowMs += 1;
  expect(await n2.lines(SUBMITTED)).toEqual([line("n2")]);
  await n1.publisher.publish();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
  await n1.publisher[Symbol.asyncDispose]();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n2")]);
});

it("stores its layout again when the database has lost it", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, storage } = nodes;
  await n1.publisher.publish();
  await storage.metrics.dropSamples({ nodeId: "n1" });
  await n1.publisher.publish();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
});

it("says so and leaves the row out when it cannot read what another node wrote", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, storage, clock } = nodes;
  await n1.publisher.publish();
  const row = { organizationId: "one", layoutId: "x", takenAtMs: clock.nowMs };
  await storage.metrics.putSamples({
    nodeId: "strange",
    nowMs: clock.nowMs,
    rows: [{ ...row, layout: "{not json\n", samples: "AAAA" }],
  });
  await storage.metrics.putSamples({
    nodeId: "stranger",
    nowMs: clock.nowMs,
    rows: [{ ...row, layout: '["a"]\n', samples: "AAAA" }],
  });
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
  expect(n2.errors).toHaveLength(2);
});

it("goes on after a time at which the database did not answer", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, storage } = nodes;
  let isDown = true;
  const failing: MetricsStorage = {
    ...storage.metrics,
    putSamples: (parameters) =>
      isDown ? Promise.reject(new Error("down")) : storage.metrics.putSamples(parameters),
  };
  const errors: unknown[] = [];
  const publisher = new Publisher({
    metrics: n1.metrics,
    storage: failing,
    nodeId: "n1",
    now: nodes.clock.now,
    onError: (err) => void errors.push(err),
  });
  await publisher.publish();
  expect(errors).toHaveLength(1);
  isDown = false;
  await publisher.publish();
  expect(await n2.lines(SUBMITTED)).toEqual([line("n1"), line("n2")]);
});

it("does not hold up the event loop with many series, on neither side", async () => {
  await using nodes = await twoNodes();
  const { n1, n2, clock, storage } = nodes;
  const metrics = new Metrics({ node: "n1", now: clock.now, maxSeries: 10_000 });
  const deployment = metrics.deployment({ ...ACME, deployment: "digits" });
  for (let index = 0; index < 3_000; index += 1) {
    const endpoint = `endpoint-${index}`;
    deployment.requestFinished(endpoint, { protocol: "http", code: "ok", seconds: 1 });
    deployment.taskFinished(endpoint, "success", 1);
  }
  const { now } = clock;
  const onError = (err: unknown): void => void n1.errors.push(err);
  const publisher = new Publisher({
    metrics,
    storage: storage.metrics,
    nodeId: "n1",
    now,
    onError,
  });
  expect(await longestTurnMs(() => publisher.publish())).toBeLessThan(50);
  expect(await longestTurnMs(() => publisher.publish())).toBeLessThan(50);
  const read = () => n2.lines('tessera_task_run_seconds_count{node="n1"}');
  expect(await longestTurnMs(read)).toBeLessThan(50);
  expect(await read()).toHaveLength(3_000);
  expect(n1.errors).toEqual([]);
});
