import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MetricChange, WorkerMessage } from "../../src/protocol/messages.ts";
import { WorkerProcess } from "./process.ts";

type Metrics = Extract<WorkerMessage, { type: "metrics" }>;

const isMetrics = (message: WorkerMessage): message is Metrics => message.type === "metrics";

describe("a worker", () => {
  let worker: WorkerProcess;

  beforeAll(async () => {
    ({ worker } = await WorkerProcess.ready("counting.ts"));
  });
  afterAll(() => worker[Symbol.asyncDispose]());

  /** What is sent for a call, up to its result. */
  async function counted(endpoint: string, args: object): Promise<Metrics[]> {
    const before = worker.messages.length;
    await worker.result(endpoint, args);
    const messages = worker.messages.slice(before);
    return messages
      .slice(
        0,
        messages.findIndex(({ type }) => type === "results"),
      )
      .filter(isMetrics);
  }

  const changesOf = (messages: readonly Metrics[]): MetricChange[] =>
    messages.flatMap(({ changes }) => changes);

  it("sends what setup counted when it is ready, and not before", async () => {
    const first = await worker.find((message) => (isMetrics(message) ? message : undefined));
    expect(worker.messages[0]).toMatchObject({ type: "ready" });
    expect(first.changes).toEqual([
      { metric: "loaded", labels: [], value: 2 },
      { metric: "texts_total", labels: [], value: 1 },
    ]);
  });

  it("sends what a call has counted before its result, and only what is new", async () => {
    const endpoint = "read";
    const expected = (length: number, counts: number[], loaded: number) => [
      { metric: "tokens_total", endpoint, labels: ["small", "input"], value: length },
      { metric: "tokens_total", endpoint, labels: ["small", "output"], value: 1 },
      { metric: "texts_total", endpoint, labels: [], value: 1 },
      { metric: "size_bytes", endpoint, labels: [], value: length, counts },
      { metric: "busy", labels: ["small"], value: length },
      { metric: "loaded", labels: [], value: loaded },
    ];
    expect(changesOf(await counted("read", { text: "abcd" }))).toEqual(expected(4, [0, 1, 0], 1));
    expect(changesOf(await counted("read", { text: "a" }))).toEqual(expected(1, [1, 0, 0], 0));
    const long = "a".repeat(11);
    expect(changesOf(await counted("read", { text: long }))).toEqual(expected(11, [0, 0, 1], -1));
  });

  it("sends what a call counts that goes on", async () => {
    const id = worker.start("hang", {});
    const found = await worker.find((message) =>
      isMetrics(message) ? message.changes.find(({ endpoint }) => endpoint === "hang") : undefined,
    );
    expect(found.value).toBe(5);
    worker.send({ type: "abort", id, reason: "cancelled" });
    await worker.outcome(id);
  });

  it("leaves out what cannot be counted, without failing the call, and says so once", async () => {
    expect(await counted("mistaken", {})).toEqual([]);
    expect(await counted("mistaken", {})).toEqual([]);
    const lines = worker.messages
      .flatMap((one) => (one.type === "log" ? [one.message] : []))
      .filter((line) => line.startsWith("metric "));
    expect(lines.map((line) => line.replace(/; this was not counted.*/, ""))).toEqual([
      "metric texts_total: a counter only goes up: it cannot add a negative amount",
      "metric tokens_total: the label model must be given, as a string or a number",
      "metric loaded: it counts finite numbers, not Infinity",
      "metric size_bytes: it counts finite numbers, not a value of type undefined",
    ]);
  });

  it("cuts long values of labels, and has at most 2,000 series of a metric", async () => {
    const [cut] = changesOf(await counted("many", { values: 1, length: 300 }));
    expect(cut?.labels).toEqual([`0${"x".repeat(199)}`, "\ufffd"]);
    const messages = await counted("many", { values: 2_500 });
    const changes = changesOf(messages);
    // Three there were before.
    expect(changes).toHaveLength(1_997);
    expect(messages.map(({ changes }) => changes.length)).toEqual([500, 500, 500, 497]);
    expect(messages.map(({ dropped }) => dropped)).toEqual([
      [{ metric: "tokens_total", events: 503 }],
      [],
      [],
      [],
    ]);
  });
});

it("a worker that is told to stop sends what it has counted first", async () => {
  const { worker } = await WorkerProcess.ready("counting.ts");
  await using _ = worker;
  worker.send({ type: "stop" });
  expect(await worker.exited).toBe(0);
  expect(worker.messages.filter(isMetrics).flatMap(({ changes }) => changes)).toHaveLength(2);
});
