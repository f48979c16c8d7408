import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus as Serving,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { type Arrival, Gate } from "../serve/gate.ts";
import { refusal } from "../serve/refusal.ts";
import { type Served, serve } from "../serve/served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("faults", { graceMs: 100 }), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

/** The process that takes the next call; there is one worker. */
let pid: number;
const currentPid = async () => (await served.post("/pid", {})).json as number;
beforeEach(async () => {
  pid = await currentPid();
});

const deaf = () => ({ url: gate.url, listens: false });
const listening = () => ({ url: gate.url, listens: true });

async function start(endpoint: string, values: object): Promise<{ id: string; arrival: Arrival }> {
  const id = await served.submit(endpoint, values);
  return { id, arrival: await gate.arrival() };
}

const abort = (endpoint: string, id: string) =>
  served.fetch(`/${endpoint}/cancel?task_id=${id}&abort=true`, { method: "PUT" });

describe("a task that takes longer than its timeout", () => {
  const failed = {
    status: "failure",
    attempt: 1,
    failure: {
      reason: "timeout",
      code: "deadline_exceeded",
      message: "endpoint linger did not end within its timeout of 200 ms",
    },
  };

  it("ends at once when it listens to its signal, and its worker lives on", async () => {
    const id = await served.submit("linger", { listens: true });
    expect(refusal(await served.result("linger", id))).toMatchObject({
      status: 504,
      code: "deadline_exceeded",
      reason: "TASK_FAILED",
      metadata: { failure_reason: "timeout" },
    });
    expect(await served.status("linger", id)).toMatchObject(failed);
    expect(await currentPid()).toBe(pid);
  });

  it("is killed with its worker after a grace when it does not listen", async () => {
    const id = await served.submit("linger", { listens: false });
    expect(await served.ended("linger", id)).toMatchObject(failed);
    expect(await currentPid()).not.toBe(pid);
  });

  it("is killed with its worker when it blocks the event loop", async () => {
    const id = await served.submit("spin", {});
    expect(await served.ended("spin", id)).toMatchObject({
      status: "failure",
      failure: { reason: "timeout" },
    });
    expect(await currentPid()).not.toBe(pid);
  });

  it("is tried again when its endpoint has retries", async () => {
    const id = await served.submit("linger_once", { listens: true });
    expect((await served.result("linger_once", id)).json).toBe("in time");
    expect(await served.status("linger_once", id)).toMatchObject({ attempt: 2 });
  });
});

it("calls go to a worker that answers, although the one that is blocked has fewer", async () => {
  await using two = await serve("poison", { workers: 2 });
  const blocked = two.post("/block", { ms: 3_000 });
  const ids = await Promise.all(
    Array.from({ length: 4 }, () => two.submit("innocent", { ms: 3_000 })),
  );
  await Promise.all(
    ids.map((id) => two.until("innocent", id, ({ status }) => status !== "queued")),
  );
  const headers = { "content-type": "application/json" };
  const pid = async (): Promise<unknown> => {
    const init = { method: "POST", body: "{}", headers, signal: AbortSignal.timeout(300) };
    return (await two.fetch("/pid", init).catch(() => undefined))?.json;
  };
  const pids = () => Promise.all(Array.from({ length: 20 }, pid));
  // Sooner than the blocked worker counts as that.
  await expect.poll(pids, { timeout: 1_500 }).not.toContain(undefined);
  expect(await pids()).not.toContain((await blocked).json);
});

describe("a call that takes longer than its timeout", () => {
  it.each([
    ["linger_call", { listens: true }, "lives on"],
    ["linger_call", { listens: false }, "is killed"],
    ["spin_call", {}, "is killed"],
  ])("%s is answered 504, with %j, and its worker %s", async (endpoint, values, fate) => {
    expect(refusal(await served.post(`/${endpoint}`, values))).toMatchObject({
      status: 504,
      code: "deadline_exceeded",
      reason: "CALL_TIMEOUT",
      message: `endpoint ${endpoint} did not end within its timeout of 200 ms`,
    });
    if (fate === "lives on") {
      expect(await currentPid()).toBe(pid);
    } else {
      // Calls beside it are answered 503 when it is killed.
      await expect.poll(currentPid).not.toSatisfy((now) => now === pid || typeof now !== "number");
    }
  });

  it("is answered at its timeout while its function goes on, which keeps its slot", async () => {
    await using patient = await serve("faults", { graceMs: 60_000 });
    const values = { url: gate.url };
    const call = patient.post("/late_call", values);
    const arrival = await gate.arrival();
    expect(refusal(await call)).toMatchObject({ status: 504, reason: "CALL_TIMEOUT" });
    expect(refusal(await patient.post("/late_call", values))).toMatchObject({
      status: 503,
      reason: "NO_WORKER",
    });
    arrival.open("too late");
    await arrival.gone;
    expect((await patient.post("/pid", {})).json).toBe(arrival.pid);
  });

  it("is aborted when its caller leaves", async () => {
    const leaving = new AbortController();
    const body = JSON.stringify(listening());
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", body, headers, signal: leaving.signal };
    const call = served.fetch("/gated_call", init).catch((err: Error) => err.name);
    const arrival = await gate.arrival();
    leaving.abort();
    expect(await call).toBe("AbortError");
    await arrival.gone;
    expect(await currentPid()).toBe(pid);
  });
});

describe("a task that ends its process", () => {
  it.each(["exit", "unhandled"])("by %s runs again and succeeds", async (endpoint) => {
    const id = await served.submit(endpoint, { times: 1 });
    expect((await served.result(endpoint, id)).json).toBe(2);
    expect(await served.status(endpoint, id)).toMatchObject({ status: "success", attempt: 2 });
    expect(await currentPid()).not.toBe(pid);
  });

  it("again and again fails as worker_lost after its fourth attempt", async () => {
    const id = await served.submit("exit", { times: 99 });
    expect(refusal(await served.result("exit", id))).toMatchObject({
      status: 500,
      code: "internal",
      reason: "TASK_FAILED",
      message:
        "the worker died during this task 4 times; it is not tried again; the last time: it exited with code 3",
      metadata: { failure_reason: "worker_lost" },
    });
    const lost = { reason: "worker_lost", message: "it exited with code 3" };
    expect(await served.status("exit", id)).toMatchObject({
      status: "failure",
      attempt: 4,
      attempts: [
        { number: 1, failure: lost },
        { number: 2, failure: lost },
        { number: 3, failure: lost },
        { number: 4, failure: { reason: "worker_lost" } },
      ],
    });
  });
});

describe("a worker that is killed from outside", () => {
  it("has its task run again, which tells the attempt", async () => {
    const { id, arrival } = await start("gated", listening());
    expect(arrival).toMatchObject({ pid, attempt: 1 });
    process.kill(arrival.pid, "SIGKILL");
    const second = await gate.arrival();
    expect(second.attempt).toBe(2);
    expect(second.pid).not.toBe(pid);
    expect(await served.status("gated", id)).toMatchObject({ status: "running", attempt: 2 });
    second.open("at last");
    expect((await served.result("gated", id)).json).toBe("at last");
    const { text } = await served.get(`/gated/events?task_id=${id}`);
    expect([...text.matchAll(/"status":"(\w+)"/g)].map(([, status]) => status)).toEqual([
      ...["queued", "running", "queued", "running", "success"],
    ]);
  });

  it("is replaced when it was idle, and what comes meanwhile waits for the next", async () => {
    const transport = createConnectTransport({ baseUrl: served.origin, httpVersion: "1.1" });
    const health = createClient(Health, transport);
    const leaving = new AbortController();
    for await (const { status } of health.watch({}, { signal: leaving.signal })) {
      if (status === Serving.NOT_SERVING) {
        break;
      }
      process.kill(pid, "SIGKILL");
    }
    leaving.abort();
    const id = await served.submit("pid_later", {});
    const call = await served.post("/pid", {});
    expect(call.json).not.toBe(pid);
    expect((await served.result("pid_later", id)).json).toBe(call.json);
  });

  it("has a task that was submitted before anyone noticed run by the next", async () => {
    process.kill(pid, "SIGKILL");
    const id = await served.submit("pid_later", {});
    expect((await served.result("pid_later", id)).json).not.toBe(pid);
  });

  it("has its calls answered with what happened", async () => {
    const call = served.post("/gated_call", listening());
    process.kill((await gate.arrival()).pid, "SIGKILL");
    expect(refusal(await call)).toMatchObject({
      status: 500,
      code: "internal",
      reason: "WORKER_LOST",
      message:
        "the worker died while endpoint gated_call ran alone in it: it was killed by SIGKILL",
    });
    expect(refusal(await served.post("/exit_call", {}))).toMatchObject({
      reason: "WORKER_LOST",
      message: "the worker died while endpoint exit_call ran alone in it: it exited with code 3",
    });
  });
});

describe("a running task that is cancelled with abort", () => {
  it("ends at once when it listens to its signal", async () => {
    const { id, arrival } = await start("gated", listening());
    const answer = await abort("gated", id);
    expect(answer).toMatchObject({ status: 200, json: { task_id: id, status: "cancelled" } });
    await arrival.gone;
    expect(await served.status("gated", id)).toMatchObject({ status: "cancelled", attempt: 1 });
    expect(await currentPid()).toBe(pid);
  });

  it("ends alone when it does not: its neighbour goes on, and others run in another worker", async () => {
    const { id } = await start("gated", deaf());
    const neighbour = await start("gated", listening());
    expect(neighbour.arrival.pid).toBe(pid);
    expect(await abort("gated", id)).toMatchObject({ status: 200, json: { status: "cancelled" } });
    expect(await currentPid()).not.toBe(pid);
    neighbour.arrival.open("undisturbed");
    expect((await served.result("gated", neighbour.id)).json).toBe("undisturbed");
    expect(await served.status("gated", neighbour.id)).toMatchObject({ attempt: 1 });
  });

  it("is refused for a task that has ended", async () => {
    const id = await served.submit("pid_later", {});
    await served.result("pid_later", id);
    expect(refusal(await abort("pid_later", id))).toMatchObject({ reason: "TASK_FINISHED" });
  });
});

describe("a task that throws", () => {
  it("is tried as often as its endpoint says, and then succeeds", async () => {
    const id = await served.submit("flaky", { succeeds: 3 });
    expect((await served.result("flaky", id)).json).toBe(3);
    expect(await served.status("flaky", id)).toMatchObject({ status: "success", attempt: 3 });
  });

  it("fails with what the last attempt threw", async () => {
    const id = await served.submit("flaky", { succeeds: 4 });
    expect(refusal(await served.result("flaky", id))).toMatchObject({
      status: 503,
      code: "unavailable",
      message: "attempt 3 failed",
    });
    expect(await served.status("flaky", id)).toMatchObject({ status: "failure", attempt: 3 });
  });

  it("has its retries still when it lost a worker", async () => {
    const id = await served.submit("lost_and_flaky", {});
    expect((await served.result("lost_and_flaky", id)).json).toBe(4);
  });

  it("is queued until its next attempt, and can be cancelled meanwhile", async () => {
    const id = await served.submit("patient", {});
    await served.until("patient", id, ({ status, attempt }) => status === "queued" && attempt > 0);
    const next = served.status("patient", id, 30);
    const path = `/patient/cancel?task_id=${id}`;
    expect((await served.fetch(path, { method: "PUT" })).status).toBe(200);
    expect(await next).toMatchObject({ status: "cancelled", attempt: 1, failure: null });
  });

  it("is not tried again when that cannot help", async () => {
    const id = await served.submit("hopeless", {});
    expect(await served.ended("hopeless", id)).toMatchObject({ status: "failure", attempt: 1 });
  });
});
