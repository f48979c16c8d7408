/** WorkerService on a real node, spoken to over HTTP/2. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { QueuedCode } from "../../../gen/tessera/v1/task_pb.js";
import { DeploymentStatus, TaskStatus, WorkerPlace } from "../../../src/client/index.ts";
import { artifact, World } from "../hosting/world.ts";
import { json, TestWorker } from "./test-worker.ts";

let world: World;
let token: string;
const workers: TestWorker[] = [];

/** A deployment whose workers join. */
async function deployRemote(where: World): Promise<void> {
  await where.deploy("echo", await artifact("echo"), { settings: { place: WorkerPlace.REMOTE } });
  await where.until("echo", ({ statusReason }) => statusReason.includes("waits for a worker"));
}

async function workerToken(options: object = { deployments: ["echo"] }) {
  return world.platform.createToken(world.cookie, { access: ["worker"], ...options });
}

function newWorker(value = token): TestWorker {
  const worker = new TestWorker(world.platform.url, value);
  workers.push(worker);
  return worker;
}

async function joined(): Promise<TestWorker> {
  return (await newWorker().register()).open();
}

async function submit(values: object): Promise<string> {
  const submitted = await world.client.tasks.submitTask({
    deployment: "acme/echo",
    endpoint: "work",
    input: { case: "arguments", value: values as never },
  });
  return submitted.task?.taskId ?? "";
}

async function task(taskId: string) {
  return world.client.tasks.getTask({ deployment: "acme/echo", taskId });
}

beforeAll(async () => {
  world = await World.start();
  await deployRemote(world);
  token = (await workerToken()).value;
});
afterEach(async () => {
  for (const worker of workers.splice(0)) {
    worker.send({ case: "draining", value: { reason: "the test is over" } });
    await worker[Symbol.asyncDispose]();
  }
});
afterAll(() => world[Symbol.asyncDispose]());

describe("a worker that joins", () => {
  it("runs calls of apis, and answers them", async () => {
    const worker = await joined();
    expect(worker.registered).toMatchObject({ protocol: 1, revision: 1 });
    const answer = world.call("echo", "/say", { body: { text: "hello" } });
    const call = await worker.take();
    expect(call).toMatchObject({ endpoint: "say", json: '{"text":"hello"}' });
    worker.results(json(call.id, "from afar"));
    expect(await answer).toMatchObject({ status: 200, text: "from afar" });
    expect(await worker.acknowledged(call.id)).toBe("recorded");
  });

  it("on a drained machine takes no new calls, ends those that it has, and takes some when it is taken back", async () => {
    const machines = world.client.machines;
    // It does not send heartbeats here.
    const gpu = { runtime: { hostname: "gpu-1" }, silenceLimit: { seconds: 60n } };
    const drained = newWorker();
    await drained.register(gpu);
    await drained.open();
    const load = { processors: 8, busyProcessors: 2, memoryBytes: 1_000n, usedMemoryBytes: 400n };
    drained.send({ case: "heartbeat", value: { sequence: 1n, load } });
    const first = await submit({ text: "first" });
    const call = await drained.take();
    await world.platform.call("/api/v1/machines:drain", { machine: "gpu-1" }, world.cookie);
    const isDrained = async () =>
      (await world.client.deployments.listWorkers({ deployment: "echo" })).workers.map(
        ({ machine }) => [machine?.hostname, machine?.drained],
      );
    await expect.poll(isDrained, { timeout: 20_000 }).toEqual([["gpu-1", true]]);
    const other = await joined();
    const second = await submit({ text: "second" });
    const away = await other.take();
    expect(away.taskId).toBe(second);
    other.results(json(away.id, "at the other"));
    await other.acknowledged(away.id);
    expect(drained.assigned).toEqual([]);
    drained.results(json(call.id, "in the end"));
    await drained.acknowledged(call.id);
    expect((await task(first)).status).toBe(TaskStatus.SUCCESS);
    expect((await machines.listMachines({})).machines).toMatchObject([
      { name: "elsewhere" },
      { name: "gpu-1", load, drain: { startedBy: "ada@example.com" } },
    ]);

    // As after a restart of the machine.
    const again = newWorker();
    await again.register(gpu);
    await again.open();
    await expect.poll(isDrained, { timeout: 20_000 }).toContainEqual(["gpu-1", true]);
    for (const one of [drained, other]) {
      one.send({ case: "draining", value: { reason: "it goes" } });
    }
    await expect.poll(isDrained, { timeout: 20_000 }).toEqual([["gpu-1", true]]);
    const third = await submit({ text: "third" });
    expect(again.assigned).toEqual([]);
    expect((await task(third)).queuedReason?.code).toBe(QueuedCode.NO_MATCHING_WORKER);
    await world.platform.call("/api/v1/machines:resume", { machine: "gpu-1" }, world.cookie);
    const last = await again.take();
    expect(last.taskId).toBe(third);
    again.results(json(last.id, "at last"));
    await again.acknowledged(last.id);
  });

  it("is called by pages of the origins that its author names, on its own host alone", async () => {
    const { index, ...code } = await artifact("echo");
    const origin = "https://app.example";
    const cors = { origins: [origin], headers: ["X-Tenant"], credentials: true };
    const shared = { ...code, index: { ...index, service: { ...index.service, cors } } };
    await world.deploy("shared", shared, { settings: { place: WorkerPlace.REMOTE } });
    await world.until("shared", ({ statusReason }) => statusReason.includes("waits for a worker"));
    const { value } = await workerToken({ deployments: ["shared"] });
    await (await newWorker(value).register({ deployment: "shared" })).open();
    await world.until("shared", ({ status }) => status === DeploymentStatus.READY);
    const asked = { origin, "access-control-request-method": "POST" };
    const preflight = { method: "OPTIONS", headers: asked };
    const answer = await world.call("shared", "/say", preflight);
    expect(answer).toMatchObject({ status: 204 });
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-credentials": "true",
      "access-control-allow-headers": expect.stringMatching(/Authorization.*, X-Tenant$/),
    });
    const others = [
      await world.call("echo", "/say", preflight),
      await world.call("shared", "/say", {
        ...preflight,
        headers: { ...asked, origin: "https://evil.example" },
      }),
    ];
    for (const { headers } of others) {
      expect(headers).not.toHaveProperty("access-control-allow-origin");
    }
    for (const path of ["/say", "/api/v1/tokens", "/tessera.v1.TaskService/ListTasks"]) {
      const names = { "access-control-request-headers": "authorization, tessera-deployment" };
      for (const [method, headers] of [
        ["OPTIONS", { ...asked, ...names }],
        ["POST", { origin, "tessera-deployment": "acme/shared" }],
      ] as const) {
        const there = await fetch(world.platform.url + path, { method, headers });
        expect(there.headers.has("access-control-allow-origin"), `${method} ${path}`).toBe(false);
      }
    }
  });

  it("runs tasks, whose results are stored before they are acknowledged", async () => {
    const worker = await joined();
    const taskId = await submit({ text: "a" });
    const call = await worker.take();
    expect(call).toMatchObject({ endpoint: "work", taskId, attempt: 1 });
    worker.results(json(call.id, "done"));
    expect(await worker.acknowledged(call.id)).toBe("recorded");
    expect(await task(taskId)).toMatchObject({ status: TaskStatus.SUCCESS });
  });

  it("is told to abort a task that is cancelled", async () => {
    const worker = await joined();
    const taskId = await submit({ text: "a" });
    const call = await worker.take();
    const sentMs = performance.now();
    const key = { deployment: "acme/echo", taskId };
    const cancelled = world.client.tasks.cancelTask({ ...key, abort: true });
    await worker.until(({ message }) => message.case === "abort" && message.value.id === call.id);
    expect(performance.now() - sentMs).toBeLessThan(250);
    worker.results({ id: call.id, end: { case: "aborted", value: { reason: "cancelled" } } });
    await worker.acknowledged(call.id);
    await cancelled;
    expect(await task(taskId)).toMatchObject({ status: TaskStatus.CANCELLED });
  });

  it("comes back with its calls after its stream broke, and loses no result", async () => {
    const worker = await joined();
    const taskId = await submit({ text: "a" });
    const call = await worker.take();
    await worker.cut();
    const waiting = await submit({ text: "b" });
    await expect
      .poll(async () => (await task(waiting)).queuedReason?.code)
      .toBe(QueuedCode.WORKER_UNRESPONSIVE);
    const held = [{ id: call.id, taskId, attempt: 1, endpoint: "work" }];
    await worker.register({ resumeSession: worker.session, held });
    expect(worker.registered?.keep).toEqual([call.id]);
    await worker.open();
    worker.results(json(call.id, "done"));
    expect(await worker.acknowledged(call.id)).toBe("recorded");
    expect(await task(taskId)).toMatchObject({ status: TaskStatus.SUCCESS, attempt: 1 });
    // The acknowledgement may have been lost.
    worker.heard.length = 0;
    worker.results(json(call.id, "done"));
    expect(await worker.acknowledged(call.id)).toBe("stale");
    const next = await worker.take();
    expect(next.taskId).toBe(waiting);
    worker.results(json(next.id, "done"));
    await worker.acknowledged(next.id);
  });

  it("comes back without a call, which then runs again", async () => {
    const worker = await joined();
    const taskId = await submit({ text: "a" });
    await worker.take();
    await worker.cut();
    await worker.register({ resumeSession: worker.session });
    expect(worker.registered?.keep).toEqual([]);
    await worker.open();
    const again = await worker.take();
    expect(again).toMatchObject({ taskId, attempt: 2 });
    worker.results(json(again.id, "done"));
    await worker.acknowledged(again.id);
  });

  it("ends when it sends a result of a call that it was not given", async () => {
    const worker = await joined();
    worker.results(json(99n, "forged"));
    expect(String(await worker.ended)).toContain("which was never assigned");
    await expect(worker.register({ resumeSession: worker.session })).rejects.toThrow(
      "the session has ended",
    );
  });

  it("ends with its token, within a second or so", async () => {
    const { value, id: tokenId } = await workerToken();
    const worker = await (await newWorker(value).register()).open();
    await world.client.tokens.deleteToken({ tokenId });
    expect(String(await worker.ended)).toMatch(/token/i);
  });
});

describe("registering", () => {
  it("is refused to a token of another deployment, and to tokens without worker access", async () => {
    await world.deploy("other", await artifact("echo"));
    const other = await workerToken({ deployments: ["other"] });
    await expect(newWorker(other.value).register()).rejects.toThrow("not for deployment echo");
    const { value } = await world.platform.createToken(world.cookie);
    await expect(newWorker(value).register()).rejects.toThrow("worker access");
  });

  it("is refused to a worker of another protocol, or with another manifest", async () => {
    await expect(newWorker().register({ protocolMin: 2, protocolMax: 3 })).rejects.toThrow(
      "speaks versions 2 to 3",
    );
    const code = { case: "manifestJson", value: '{"name":"x","endpoints":[]}' } as const;
    await expect(newWorker().register({ code })).rejects.toThrow("is not that of the revision");
  });

  it("brings the artifact, whose files can be read from any offset", async () => {
    const worker = await newWorker().register();
    const index = JSON.parse(Buffer.from(worker.registered?.artifactIndex ?? []).toString());
    const [file] = index.files;
    const read = async (offset: number) => {
      const chunks: Uint8Array[] = [];
      const source = { case: "artifactSha256", value: file.sha256 } as const;
      const { session } = worker;
      for await (const { data } of worker.client.readBlob({
        session,
        source,
        offset: BigInt(offset),
      })) {
        chunks.push(data);
      }
      return Buffer.concat(chunks);
    };
    const whole = await read(0);
    expect(whole.length).toBe(file.size);
    expect((await read(100)).equals(whole.subarray(100))).toBe(true);
    await expect(read(file.size + 1)).rejects.toThrow(`the file has ${file.size} bytes`);
  });
});

describe("silence", () => {
  it("of a worker gives its tasks to others", async () => {
    await using quick = await World.start({ config: { silenceMs: 600 } });
    await deployRemote(quick);
    const { value } = await quick.platform.createToken(quick.cookie, {
      access: ["worker"],
      all_deployments: true,
    });
    const worker = await (await new TestWorker(quick.platform.url, value).register()).open();
    const submitted = await quick.client.tasks.submitTask({
      deployment: "acme/echo",
      endpoint: "work",
      input: { case: "arguments", value: { text: "a" } as never },
    });
    const taskId = submitted.task?.taskId ?? "";
    await worker.take();
    await using other = await (await new TestWorker(quick.platform.url, value).register()).open();
    const beats = setInterval(
      () => other.send({ case: "heartbeat", value: { sequence: 1n } }),
      100,
    );
    expect(await other.take()).toMatchObject({ taskId, attempt: 2 });
    clearInterval(beats);
    await worker[Symbol.asyncDispose]();
  });
});
