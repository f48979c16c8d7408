import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { OtlpReceiver } from "../../tracing/receiver.ts";
import {
  CALLER,
  CALLER_SPAN,
  named,
  names,
  ofTask,
  serveTraced,
  TRACED,
} from "../../tracing/traced.ts";
import { Gate } from "../serve/gate.ts";
import type { Served, Shown } from "../serve/served.ts";

const PRODUCER = 4;
const CONSUMER = 5;

let receiver: OtlpReceiver;
let gate: Gate;
beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  gate = await Gate.build();
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(() => receiver.clear());

describe("the trace of a task", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serveTraced({ receiver });
  });
  afterAll(() => served.stop());

  const submit = async (endpoint: string, values: object = {}): Promise<string> => {
    const answer = await served.post(`/${endpoint}/submit`, values, TRACED);
    expect(answer.status, answer.text).toBe(202);
    return (answer.json as Shown).task_id;
  };

  it("is the caller's: submit below its span, wait and attempt below submit", async () => {
    const id = await submit("seen_later");
    const { traceparent, tracestate } = (await served.result("seen_later", id)).json as {
      traceparent: string;
      tracestate: string;
    };
    const spans = await receiver.find(3, ofTask(id));
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER]));
    const submitted = named(spans, "submit seen_later");
    const wait = named(spans, "wait seen_later");
    const attempt = named(spans, "attempt seen_later");
    expect(submitted).toMatchObject({ parentId: CALLER_SPAN, kind: PRODUCER });
    expect(submitted.traceState).toBe(TRACED.tracestate);
    expect(wait.parentId).toBe(submitted.spanId);
    expect(attempt).toMatchObject({ parentId: submitted.spanId, kind: CONSUMER, failed: false });
    expect(attempt.startMs).toBeGreaterThanOrEqual(wait.startMs);
    // The function is told where it stands, for what it calls itself.
    expect(traceparent).toBe(`00-${CALLER}-${attempt.spanId}-01`);
    expect(tracestate).toBe(TRACED.tracestate);
  });

  it("says what it is about, in the words of the conventions", async () => {
    const id = await submit("seen_later");
    const spans = await receiver.find(3, ofTask(id));
    const messaging = {
      "messaging.system": "tessera",
      "messaging.destination.name": "local/traced/seen_later",
      "messaging.message.id": id,
      "tessera.deployment": "local/traced",
      "tessera.endpoint": "seen_later",
      "tessera.task.id": id,
    };
    expect(named(spans, "submit seen_later").attributes).toMatchObject({
      ...messaging,
      "messaging.operation.type": "send",
      "tessera.outcome": "stored",
      "tessera.request.id": expect.stringMatching(/^[\da-f]{32}$/),
    });
    expect(named(spans, "attempt seen_later").attributes).toMatchObject({
      ...messaging,
      "messaging.operation.type": "process",
      "tessera.task.attempt": 1,
      "tessera.outcome": "success",
    });
    expect(spans[0]?.resource).toMatchObject({
      "service.name": "tessera",
      "service.version": expect.any(String),
      "service.instance.id": expect.any(String),
      "telemetry.sdk.language": "nodejs",
    });
  });

  it("begins with submit where the caller does not trace", async () => {
    const id = await served.submit("seen_later", {});
    const spans = await receiver.find(3, ofTask(id));
    const submitted = named(spans, "submit seen_later");
    expect(submitted.parentId).toBe("");
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([submitted.traceId]));
  });

  it("shows the wait while every worker is busy", async () => {
    const first = await served.submit("gated", { url: gate.url });
    const opened = await gate.arrival();
    const second = await served.submit("gated", { url: gate.url });
    const begunMs = Date.now();
    opened.open("done");
    (await gate.arrival()).open("done");
    await served.result("gated", second);
    await served.result("gated", first);
    const spans = await receiver.find(3, ofTask(second));
    const wait = named(spans, "wait gated");
    expect(wait.startMs).toBeLessThanOrEqual(begunMs);
    expect(wait.endMs).toBeGreaterThanOrEqual(begunMs);
    expect(named(spans, "attempt gated").startMs).toBeGreaterThanOrEqual(wait.endMs - 1);
  });

  it("has an attempt and a wait for each time that it was tried", async () => {
    const id = await submit("flaky");
    await served.result("flaky", id);
    const spans = await receiver.find(5, ofTask(id));
    expect(names(spans).sort()).toEqual([
      "attempt flaky",
      "attempt flaky",
      "submit flaky",
      "wait flaky",
      "wait flaky",
    ]);
    const first = named(spans, "attempt flaky");
    expect(first).toMatchObject({ failed: true, traceId: CALLER });
    expect(first.attributes).toMatchObject({
      "tessera.task.attempt": 1,
      "tessera.outcome": "retried",
      "error.type": "unavailable",
    });
    const second = named(spans, "attempt flaky", 1);
    expect(second).toMatchObject({ failed: false, traceId: CALLER });
    expect(second.attributes).toMatchObject({
      "tessera.task.attempt": 2,
      "tessera.outcome": "success",
    });
    // It waited from the time of its retry on, not since it was submitted.
    expect(named(spans, "wait flaky", 1).startMs).toBeGreaterThanOrEqual(first.endMs - 1);
  });

  it("goes on after its worker has died", async () => {
    const id = await submit("dies");
    expect((await served.result("dies", id)).json).toBe(2);
    const spans = await receiver.find(5, ofTask(id));
    const [first, second] = [named(spans, "attempt dies"), named(spans, "attempt dies", 1)];
    expect(first).toMatchObject({ failed: true, traceId: CALLER });
    expect(first.attributes["error.type"]).toBe("worker_lost");
    expect(second).toMatchObject({ failed: false, traceId: CALLER, parentId: first.parentId });
    expect(named(spans, "wait dies", 1).startMs).toBeGreaterThanOrEqual(first.endMs - 1);
  });

  it("of a retry is linked to that of the task which it repeats", async () => {
    const id = await submit("seen_later");
    await served.result("seen_later", id);
    const original = named(await receiver.find(3, ofTask(id)), "submit seen_later");
    const answer = await served.fetch(`/seen_later/retry?task_id=${id}`, { method: "PUT" });
    const again = (answer.json as Shown).task_id;
    const retried = named(await receiver.find(3, ofTask(again)), "submit seen_later");
    expect(retried.traceId).not.toBe(CALLER);
    expect(retried.links).toEqual([{ traceId: CALLER, spanId: original.spanId }]);
    expect(retried.attributes["tessera.task.retry_of"]).toBe(id);
  });

  it("of each task of a batch is below the caller's span", async () => {
    const calls = Array.from({ length: 3 }, () => ({ endpoint: "seen_later", arguments: {} }));
    const answer = await served.post("/api/v1/tasks:batchSubmit", { tasks: calls }, TRACED);
    expect(answer.status, answer.text).toBe(200);
    const spans = await receiver.find(3, ({ name }) => name === "submit seen_later");
    expect(spans.map(({ parentId }) => parentId)).toEqual(Array(3).fill(CALLER_SPAN));
  });

  it("says of a submit that was refused why", async () => {
    const key = { "idempotency-key": "one" };
    await served.post("/gated/submit", { url: gate.url }, key);
    (await gate.arrival()).open("done");
    const refused = await served.post("/gated/submit", { url: `${gate.url}?` }, key);
    expect(refused.status).toBe(409);
    const [, span] = await receiver.find(2, ({ name }) => name === "submit gated");
    expect(span).toMatchObject({ failed: true });
    expect(span?.attributes).toMatchObject({
      "tessera.outcome": "refused",
      "error.type": "already_exists",
    });
  });

  it("that nobody keeps is not sent, and is told to the function as that", async () => {
    const unsampled = { traceparent: `00-${CALLER}-${CALLER_SPAN}-00` };
    const answer = await served.post("/seen_later/submit", {}, unsampled);
    const id = (answer.json as Shown).task_id;
    const { traceparent } = (await served.result("seen_later", id)).json as {
      traceparent: string;
    };
    expect(traceparent).toMatch(new RegExp(`^00-${CALLER}-[0-9a-f]{16}-00$`));
    const other = await submit("seen_later");
    await receiver.find(3, ofTask(other));
    expect(receiver.spans.filter(ofTask(id))).toEqual([]);
  });
});

describe("on two nodes with one Postgres", () => {
  it("a task is one trace, wherever it runs", async () => {
    const database = await databaseUrl();
    const options = { receiver, database };
    await using one = await serveTraced(options);
    await using other = await serveTraced(options);
    // Each has one worker with one place: two at a time have to run on both.
    const ids: string[] = [];
    for (let count = 0; count < 2; count++) {
      const answer = await one.post("/gated/submit", { url: gate.url }, TRACED);
      ids.push((answer.json as Shown).task_id);
    }
    const arrivals = [await gate.arrival(), await gate.arrival()];
    expect(new Set(arrivals.map(({ pid }) => pid)).size).toBe(2);
    for (const arrival of arrivals) {
      arrival.open("done");
    }
    const nodesOf = async (id: string) => {
      await other.result("gated", id);
      const spans = await receiver.find(3, ofTask(id));
      expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER]));
      const [submitted, attempt] = [named(spans, "submit gated"), named(spans, "attempt gated")];
      expect(attempt.parentId).toBe(submitted.spanId);
      return [submitted, attempt].map(({ resource }) => resource["service.instance.id"]);
    };
    const [first, second] = [await nodesOf(ids[0] ?? ""), await nodesOf(ids[1] ?? "")];
    expect(first?.[0]).toBe(second?.[0]);
    expect(first?.[1]).not.toBe(second?.[1]);
  });
});
