/** Requests to mounted servers as tasks: what is stored, what is answered, and what may go wrong. */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient, type TaskEndpoint } from "../../../src/client/deployment.ts";
import { ResultFormat } from "../../../src/client/index.ts";
import { Program } from "../cli/program.ts";
import { start } from "../start/platform.ts";
import { type Answer, artifact, type CallOptions, call, reasonOf, until, World } from "./world.ts";

/** Requests that are queued while the server is killed. */
const MANY = 1_000;

interface Sent {
  readonly task_id: string;
}

describe("a request to a mounted server with a queue", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start();
    await world.deployed("queueing", await artifact("queueing"), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
  }, 120_000);
  afterAll(() => world?.[Symbol.asyncDispose]());

  const ask = (path: string, options?: CallOptions) => world.call("queueing", path, options);
  const submit = async (path: string, options: CallOptions = {}): Promise<string> => {
    const answer = await ask(path, { method: "POST", ...options });
    expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
    return (answer.json as Sent).task_id;
  };
  const get = (taskId: string, below = ""): Promise<Answer> =>
    ask(`${below}/get?task_id=${taskId}&wait=30`);
  const status = async (taskId: string) => (await ask(`/status?task_id=${taskId}`)).json;

  it("is stored with method, path, query, listed headers and body, and answered as by the server", async () => {
    const taskId = await submit("/items/7/submit?priority=3&x=1&y=%2e%2E&delay=0", {
      body: { name: "é" },
      headers: {
        ...{ "x-tenant": "acme", "x-other": "no", cookie: "a=b", accept: "text/x" },
        ...{ "tessera-caller": "forged", "x-forwarded-for": "6.6.6.6" },
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      },
    });
    const answer = await get(taskId, "/items/7");
    expect(answer.status).toBe(200);
    expect(answer.headers["tessera-task-id"]).toBe(taskId);
    const { port } = new URL(world.platform.url);
    expect(answer.json).toEqual({
      method: "POST",
      url: "/items/7?x=1&y=%2e%2E",
      body: Buffer.from('{"name":"é"}').toString("latin1"),
      headers: {
        ...{ host: `queueing.acme.apps.localhost:${port}`, accept: "text/x", "x-tenant": "acme" },
        ...{ "content-type": "application/json", "content-length": "13" },
        ...{ "x-forwarded-for": expect.stringMatching(/^(?:127\.0\.0\.1|::1)$/) },
        ...{ "x-forwarded-proto": "http", "x-request-id": taskId, connection: "keep-alive" },
        ...{ "tessera-task-id": taskId, "tessera-attempt": "1" },
        traceparent: expect.stringMatching(/^00-0af7651916cd43dd8448eb211c80319c-/),
      },
    });
    expect(await status(taskId)).toMatchObject({ status: "success", priority: 3, attempt: 1 });
    expect((await ask(`/arguments?task_id=${taskId}`)).json).toMatchObject({
      arguments: {
        method: "POST",
        path: "/items/7?x=1&y=%2e%2E",
        headers: { accept: "text/x", "content-type": "application/json", "x-tenant": "acme" },
      },
      files: [{ argument: "body", content_type: "application/json", size: 13 }],
    });
  });

  it("is one of any method by the header, with the parameters of a submit behind the word", async () => {
    const headers = { "tessera-queue": 'submit; priority=-2; retention="60"' };
    const answer = await ask("/items/7/submit?priority=9", { method: "PATCH", headers });
    expect([answer.status, answer.headers.location]).toEqual([
      202,
      `/status?task_id=${answer.json.task_id}`,
    ]);
    const { task_id: taskId } = answer.json as Sent;
    expect((await get(taskId)).json).toMatchObject({
      method: "PATCH",
      url: "/items/7/submit?priority=9",
      body: "",
    });
    expect(await status(taskId)).toMatchObject({ priority: -2 });
    const root = await ask("/", { headers: { "tessera-queue": "submit", prefer: "wait=20" } });
    expect([root.status, root.json.method, root.json.url]).toEqual([200, "GET", "/"]);
    const below = await submit("/app/x/submit");
    expect((await get(below, "/app/y")).text).toBe("app POST /app/x");
    expect((await get(below)).status).toBe(404);
  });

  it("has the server's own status, headers and body as its result", async () => {
    const page = await get(await submit("/page/submit"));
    expect(page).toMatchObject({ status: 201, text: "<b>made</b>" });
    expect(page.headers).toMatchObject({
      ...{ "content-type": "text/html; charset=utf-8", location: "/page/7" },
      "set-cookie": ["a=1", "b=2"],
    });
    expect(await get(await submit("/nothing/submit"))).toMatchObject({ status: 204, text: "" });
    const large = await get(await submit("/large/submit?bytes=5000000"));
    expect([large.status, large.text.length]).toEqual([200, 5_000_000]);
  });

  it("may have a body that is larger than what is held in memory, in chunks or not", async () => {
    for (const chunked of [false, true]) {
      const { port } = new URL(world.platform.url);
      const sent = request({
        ...{ host: "127.0.0.1", port, path: "/body/submit", method: "POST" },
        headers: {
          ...{ host: `queueing.acme.apps.localhost:${port}`, "content-type": "a/b; c=d" },
          ...(!chunked && { "content-length": 3_000_000 }),
        },
      });
      sent.end(Buffer.alloc(3_000_000, "y"));
      const [res] = await once(sent, "response");
      const { task_id: taskId } = JSON.parse(await text(res)) as Sent;
      expect((await get(taskId)).json).toMatchObject({
        body: 3_000_000,
        headers: { "content-type": "a/b; c=d", "content-length": "3000000" },
      });
    }
  });

  it("fails for good with a client error, and can be read as it was answered", async () => {
    const taskId = await submit("/status/422/submit");
    expect(await get(taskId)).toMatchObject({
      status: 422,
      text: '{"detail":"it has no name"}',
      headers: { "content-type": "application/json", "x-own": "yes", "tessera-task-id": taskId },
    });
    const message = 'the server at / answered with 422: {"detail":"it has no name"}';
    expect(await status(taskId)).toMatchObject({
      ...{ status: "failure", attempt: 1 },
      failure: { reason: "error", code: "invalid_argument", message },
    });
    const client = await world.callerClient();
    const found = { deployment: "acme/queueing", taskId, resultFormat: ResultFormat.VALUE };
    await expect(client.tasks.getTaskResult(found)).rejects.toThrow(message);
    // An answer that is too long to be kept is told of.
    const long = await submit("/status/404-long/submit");
    expect(await get(long)).toMatchObject({ status: 404 });
    expect((await status(long)).failure.code).toBe("not_found");
  });

  it("is tried again after a server error, a broken connection and no answer in time", async () => {
    const unavailable = await submit("/status/503/submit");
    const answer = await get(unavailable);
    expect([answer.status, answer.text]).toEqual([503, expect.stringMatching(/^not now \d+$/)]);
    expect((await status(unavailable)).attempts).toHaveLength(2);
    for (const [path, code] of [
      ["/half", "unavailable"],
      ["/garbage", "unavailable"],
      ["/endless", "deadline_exceeded"],
    ] as const) {
      const taskId = await submit(`${path}/submit`);
      expect([path, reasonOf(await get(taskId))]).toEqual([path, "TASK_FAILED"]);
      const found = await status(taskId);
      expect([path, found.failure.code, found.attempts.length]).toEqual([path, code, 2]);
    }
  }, 60_000);

  it("is cancelled, and its server hears that the caller has left", async () => {
    const taskId = await submit("/slow/submit?ms=20000&n=left");
    await until(
      () => ask("/seen"),
      ({ text }) => text.includes("/slow?ms=20000&n=left"),
    );
    const early = await ask(`/cancel?task_id=${taskId}`, { method: "POST" });
    expect(reasonOf(early)).toBe("TASK_ALREADY_STARTED");
    const cancelled = await ask(`/cancel?task_id=${taskId}&abort=true`, { method: "PUT" });
    expect(cancelled.json.status).toBe("cancelled");
    await until(
      () => ask("/left"),
      ({ text }) => text.includes("/slow?ms=20000&n=left"),
    );
    const delayed = await submit("/items/submit?delay=60");
    expect((await ask(`/cancel?task_id=${delayed}`, { method: "POST" })).json.status).toBe(
      "cancelled",
    );
    const again = await ask(`/retry?task_id=${delayed}`, { method: "PUT" });
    expect((await get((again.json as Sent).task_id)).json.url).toBe("/items");
  });

  it("has an idempotency key that stands for its method, path, headers and body", async () => {
    const keyed = (path: string, body: object) =>
      ask(path, { body, headers: { "idempotency-key": "one" } });
    const first = await keyed("/items/submit", { a: 1 });
    const replayed = await keyed("/items/submit", { a: 1 });
    expect(replayed.json.task_id).toBe(first.json.task_id);
    expect(replayed.headers["idempotent-replayed"]).toBe("true");
    for (const [path, body] of [
      ["/items/submit", { a: 2 }],
      ["/others/submit", { a: 1 }],
      ["/items/submit?x=1", { a: 1 }],
    ] as const) {
      expect(reasonOf(await keyed(path, body))).toBe("IDEMPOTENCY_KEY_REUSED");
    }
  });

  it("is watched, listed and read by an access of it, as each task", async () => {
    const taskId = await submit("/items/submit");
    await get(taskId);
    const events = await ask(`/x/events?task_id=${taskId}`);
    expect(events.text).toContain('"status":"success"');
    const made = await ask(`/access?task_id=${taskId}`, { method: "POST" });
    const { access } = made.json as { readonly access: string };
    expect(made.json.path).toBe(`/events?task_id=${taskId}&access=${access}`);
    expect((await ask(`/get?task_id=${taskId}&access=${access}`)).status).toBe(200);
    expect((await ask(`/items?access=${access}`)).status).toBe(403);
    const client = await world.callerClient();
    const { tasks } = await client.tasks.listTasks({ deployment: "acme/queueing", endpoint: "/" });
    expect(tasks.map((task) => task.taskId)).toContain(taskId);
  });

  it("is submitted by clients as the call of an endpoint whose arguments are a request", async () => {
    const client = await world.callerClient();
    const submitted = async (fields: object) =>
      client.tasks.submitTask({
        ...{ deployment: "acme/queueing", endpoint: "/" },
        input: { case: "arguments", value: { ...fields } },
      });
    const { task } = await submitted({
      ...{ method: "PUT", path: "/items/7?x=1", headers: { "x-tenant": "t" } },
      body: "data:text/plain;base64,aGVsbG8=",
    });
    expect((await get(task?.taskId ?? "")).json).toMatchObject({
      ...{ method: "PUT", url: "/items/7?x=1", body: "hello" },
      headers: {
        "content-type": "text/plain",
        "x-tenant": "t",
        "tessera-caller": expect.stringMatching(/^token="[^"]+", organization="acme"$/),
      },
    });
    for (const fields of [
      { method: "TRACE", path: "/x" },
      { method: "GET", path: "x" },
      { method: "GET", path: "/x y" },
      { method: "GET", path: "/x\r\nx-a: b" },
      { method: "GET", path: "/", headers: { host: "a" } },
      { method: "GET", path: "/", headers: { "tessera-caller": "a" } },
      { method: "GET", path: "/", headers: { tessera_caller: "a" } },
      { method: "GET", path: "/", headers: { "content-length": "5" } },
      { method: "GET", path: "/", headers: { a: "b\r\nc: d" } },
    ]) {
      await expect(submitted(fields)).rejects.toMatchObject({ rawMessage: /argument/ });
    }
  });

  it("is submitted, awaited and refused in words of the deployment client, too", async () => {
    const { value: token } = await world.platform.createToken(world.cookie, {
      ...{ access: ["protected_endpoint"], all_deployments: true },
    });
    const client = createClient({ url: world.platform.url, deployment: "acme/queueing", token });
    const server = client["/"] as TaskEndpoint<object, unknown>;
    const body = new Blob(["hello"], { type: "text/plain" });
    const task = await server.submit({ method: "PUT", path: "/x", body }, { priority: 7 });
    expect(await task.wait()).toMatchObject({ method: "PUT", url: "/x", body: "hello" });
    expect(await server({ method: "GET", path: "/items?y=1" })).toMatchObject({
      url: "/items?y=1",
    });
    expect(await status(task.id)).toMatchObject({ priority: 7 });
    await expect(server({ method: "GET", path: "/status/422" })).rejects.toMatchObject({
      ...{ name: "TaskFailedError", status: 422 },
      message: 'the server answered with 422: {"detail":"it has no name"}',
    });
    await expect(server({ method: "GET", path: "x" })).rejects.toMatchObject({
      name: "InvalidArgumentsError",
    });
    for (const path of ["/items", "/items/submit"]) {
      const answer = await ask(path, { body: {}, headers: { "tessera-queue": "arguments" } });
      expect(reasonOf(answer)).toBe("REQUEST_INVALID");
    }
  });

  it("leaves all other paths to the server, and those of functions to them", async () => {
    expect((await ask("/items/status")).json.url).toBe("/items/status");
    expect((await ask("/items/status?task_id=7")).json.url).toBe("/items/status?task_id=7");
    expect((await ask("/items/submit")).json.url).toBe("/items/submit");
    expect((await ask("/submitted", { method: "POST" })).json.url).toBe("/submitted");
    const off = await ask("/off/a/submit", { method: "POST" });
    expect([off.status, off.text]).toEqual([
      200,
      expect.stringMatching(/^off POST .*\/off\/a\/submit$/),
    ]);
    for (const path of ["/work", "/work/submit"]) {
      const headers = { "tessera-queue": "submit" };
      const refused = await ask(path, { body: { number: 2 }, headers });
      expect(reasonOf(refused)).toBe("REQUEST_INVALID");
      expect(refused.text).toContain("work is a function");
      expect(refused.text).toContain("POST /work/submit where");
    }
    const { json } = await ask("/work/submit", { body: { number: 2 } });
    expect((await ask(`/work/get?task_id=${json.task_id}&wait=20`)).text).toBe("6");
    // A task of a function is none of the server's, wherever it is asked for.
    expect((await ask(`/get?task_id=${json.task_id}`)).status).toBe(404);
  });

  it("is refused where it cannot be a task", async () => {
    const queue = (value: string) => ({ headers: { "tessera-queue": value } });
    for (const value of ["other", "submit; prio=1", "submit, submit", "submit; delay=x", ""]) {
      expect([value, reasonOf(await ask("/items", queue(value)))]).toEqual([
        value,
        "REQUEST_INVALID",
      ]);
    }
    expect(reasonOf(await ask("/off/x", queue("submit")))).toBe("REQUEST_INVALID");
    expect(reasonOf(await ask("/items/submit?delay=1&delay=2", { method: "POST" }))).toBe(
      "REQUEST_INVALID",
    );
    const socket = await ask("/live", {
      headers: {
        ...{ "tessera-queue": "submit", connection: "Upgrade", upgrade: "websocket" },
        ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
      },
    });
    expect(reasonOf(socket)).toBe("REQUEST_INVALID");
    const long = await ask("/items/submit", {
      method: "POST",
      headers: { "x-tenant": "x".repeat(100_000) },
    });
    expect(reasonOf(long)).toBe("REQUEST_INVALID");
  });

  it("is stored whole or not at all", async () => {
    const { port } = new URL(world.platform.url);
    const host = `queueing.acme.apps.localhost:${port}`;
    const sent = async (bytes: string): Promise<string> => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.end(bytes);
      return await text(socket);
    };
    const client = await world.callerClient();
    const stored = async () =>
      (await client.tasks.listTasks({ deployment: "acme/queueing", endpoint: "/", pageSize: 1 }))
        .tasks[0]?.taskId;
    const before = await stored();
    const head = `POST /never/submit HTTP/1.1\r\nhost: ${host}\r\n`;
    expect(
      await sent(
        `${head}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
      ),
    ).toMatch(/^HTTP\/1\.1 400 /);
    await sent(`${head}content-length: 300\r\n\r\nonly this`);
    await sent(`${head}transfer-encoding: chunked\r\n\r\n500\r\nonly this`);
    for (const method of ["TRACE", "CONNECT", "BREW"]) {
      const target = method === "CONNECT" ? host : "/never";
      const answer = await sent(
        `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\ntessera-queue: submit\r\nconnection: close\r\n\r\n`,
      );
      expect([method, answer]).toEqual([method, expect.stringMatching(/^(?:HTTP\/1\.1 4\d\d |$)/)]);
    }
    const session = connectHttp2(world.platform.url);
    const broken = session.request({
      ...{ ":method": "POST", ":path": "/never/submit", ":authority": host },
      "content-length": "100",
    });
    broken.on("error", () => {});
    broken.write("x");
    await once(session, "remoteSettings");
    broken.close(8);
    session.close();
    expect(await stored()).toBe(before);
    const over2 = connectHttp2(world.platform.url);
    const whole = over2.request({
      ...{ ":method": "POST", ":path": "/items/submit", ":authority": host },
    });
    const { task_id: taskId } = JSON.parse(await text(whole.end("over HTTP/2"))) as Sent;
    over2.close();
    expect((await get(taskId)).json.body).toBe("over HTTP/2");
  });

  it("goes on beside requests that are answered at once, which go first", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    const ids = await Promise.all(
      Array.from({ length: 60 }, (_, n) => submit(`/slow/submit?ms=200&n=${n}`, { agent })),
    );
    const beganMs = performance.now();
    expect((await ask("/items", { agent })).status).toBe(200);
    expect(performance.now() - beganMs).toBeLessThan(2_000);
    for (const [n, id] of ids.entries()) {
      expect((await get(id)).text).toBe(`slow ${n}`);
    }
    agent.destroy();
  });
});

describe("queued requests", () => {
  it("can be read where nothing of their deployment runs", async () => {
    await using world = await World.start();
    await world.deployed("queueing", await artifact("queueing"));
    const { json } = await world.call("queueing", "/items/submit", { method: "POST" });
    const path = `/get?task_id=${(json as Sent).task_id}&wait=30`;
    expect((await world.call("queueing", path)).status).toBe(200);
    await world.client.deployments.stopDeployment({ deployment: "queueing" });
    expect((await world.call("queueing", path)).json.url).toBe("/items");
    // Requests that are not queued are refused then, as calls are, instead of waiting for a worker.
    await until(
      () => world.call("queueing", "/items"),
      (answer) => reasonOf(answer) === "DEPLOYMENT_STOPPED",
    );
    await world.platform[Symbol.asyncDispose]();
    await using again = await start(world.folder);
    const read = await until(
      () => call(again, "queueing", path),
      ({ status }) => status !== 503,
    );
    expect([read.status, read.json.url]).toEqual([200, "/items"]);
  }, 90_000);

  it(`have one answer each when their server is killed amid ${MANY} of them, and none is lost with the node`, async () => {
    await using world = await World.start({ env: { TESSERA_SANDBOX: "permission" } });
    await world.deployed("queueing", await artifact("queueing"), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
    await world.platform[Symbol.asyncDispose]();
    const args = ["start", "--port", "0", "--data", world.folder.data, "--sandbox", "permission"];
    const run = async () => {
      const program = new Program(args, { cwd: world.folder.path });
      const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
      return { program, started: { ...world.platform.started, port: Number(port) } };
    };
    const node = await run();
    const agent = new Agent({ keepAlive: true, maxSockets: 20 });
    const ask = (path: string, options: CallOptions = {}) =>
      call(node, "queueing", path, { agent, ...options });
    const pid = async (): Promise<number> => {
      const { text } = await until(
        () => ask("/pid"),
        (found) => found.status === 200,
      );
      return Number(text);
    };
    const first = await pid();
    const ids = await Promise.all(
      Array.from({ length: MANY }, async (_, n) => {
        const answer = await ask(`/slow/submit?ms=20&n=${n}`, { method: "POST" });
        if (n === MANY / 2) {
          process.kill(first, "SIGKILL");
        }
        return (answer.json as Sent).task_id;
      }),
    );
    process.kill(await pid(), "SIGKILL");
    await node.program.stop("SIGKILL");
    agent.destroy();

    await using again = await start(world.folder);
    const kept = new Agent({ keepAlive: true, maxSockets: 20 });
    const answers = await Promise.all(
      ids.map(async (id, n) => {
        const path = `/get?task_id=${id}&wait=60`;
        const { status, text } = await call(again, "queueing", path, { agent: kept });
        return [n, status, text];
      }),
    );
    kept.destroy();
    expect(answers).toEqual(ids.map((_, n) => [n, 200, `slow ${n}`]));
  }, 180_000);
});
