/** Accesses of tasks on a protected deployment: what they open, to whom, and for how long. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadKeys } from "../../../src/auth/keys.ts";
import { TaskAccess } from "../../../src/auth/task-access.ts";
import { createClient } from "../../../src/client/index.ts";
import { type Answer, artifact, type CallOptions, call, reasonOf, World } from "./world.ts";

const APP = "https://app.example";

let world: World;
let token: { readonly id: string; readonly value: string };
/** Of a task that has ended. */
let taskId: string;
let access: string;

beforeAll(async () => {
  world = await World.start({ env: { TESSERA_CORS: APP } });
  await world.deployed("echo", await artifact(), { authorization: true });
  await world.deployed("afar", await artifact("afar"), { authorization: true });
  await world.deployed("other", await artifact(), { authorization: true });
  token = await newToken();
  taskId = await submit();
  access = await accessTo(taskId);
});
afterAll(() => world[Symbol.asyncDispose]());

const newToken = (fields: object = {}) =>
  world.platform.createToken(world.cookie, {
    access: ["protected_endpoint"],
    all_deployments: true,
    ...fields,
  });

const post = (path: string, value = token.value, body = {}): Promise<Answer> =>
  world.call("echo", path, { body, token: value });

const callAfar = (url: string, options: CallOptions = {}): Promise<Answer> =>
  world.call("afar", url, { token: token.value, ...options });

async function submit(forMs = 0, name = "echo"): Promise<string> {
  const body = { text: "x", forMs };
  const { json } = await world.call(name, "/work/submit", { body, token: token.value });
  if (forMs === 0) {
    await world.call(name, `/work/get?task_id=${json.task_id}&wait=30`, { token: token.value });
  }
  return json.task_id;
}

async function accessTo(id: string, value = token.value): Promise<string> {
  const { status, json } = await post(`/work/access?task_id=${id}`, value);
  expect([status, json?.access]).toEqual([200, expect.stringMatching(/^tsra_/)]);
  return json.access;
}

const path = (verb: string, { id = taskId, text = access } = {}): string =>
  `/work/${verb}?task_id=${id}&access=${text}`;

/** Status and reason of a request without any header. */
async function answerTo(url: string, method = "GET", name = "echo") {
  const answer = await world.call(name, url, { method });
  return [answer.status, reasonOf(answer)];
}

describe("an access of a task", () => {
  it("opens the events, the state and the result of its task, which nobody may keep", async () => {
    for (const [verb, text] of [
      ["events", 'event: state\ndata: {"sequence":'],
      ["status", '"status":"success"'],
      ["get", "one x"],
    ] as const) {
      const answer = await world.call("echo", path(verb));
      expect([verb, answer.status]).toEqual([verb, 200]);
      expect(answer.text).toContain(text);
      expect(answer.headers).toMatchObject({
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
      });
    }
    const all = (await world.call("echo", path("events"))).text;
    const [, first] = /^id: (\d+)/.exec(all) ?? [];
    const rest = await world.call("echo", `${path("events")}&last_event_id=${first}`);
    expect(all.endsWith(rest.text)).toBe(true);
    expect(rest.text.length).toBeLessThan(all.length);
    // The endpoint gives its result at once.
    expect(await answerTo(path("stream"))).toEqual([400, "REQUEST_INVALID"]);
    const head = await fetch(`http://127.0.0.1:${world.platform.started.port}${path("status")}`, {
      method: "HEAD",
      headers: { "tessera-deployment": "acme/echo" },
    });
    expect(head.status).toBe(200);
  });

  it("opens the pieces of a streamed result", async () => {
    const { json } = await callAfar("/count/submit", { body: { to: 3 } });
    const made = await callAfar(`/count/access?task_id=${json.task_id}`, { method: "POST" });
    const pieces = made.json.path.replace("/events", "/stream");
    const answer = await world.call("afar", pieces, { headers: { accept: "text/event-stream" } });
    expect(answer.text).toContain("data: 3\n\nevent: end");
    expect(answer.headers["referrer-policy"]).toBe("no-referrer");
  });

  it("comes with its time and with addresses that are ready", async () => {
    const before = Date.now();
    const answer = await post("/work/access", token.value, { task_id: taskId });
    const { expires_at: expiresAt, path: relative, url } = answer.json;
    expect(Date.parse(expiresAt) - before).toBeGreaterThan(14 * 60_000);
    expect(Date.parse(expiresAt) - before).toBeLessThanOrEqual(15 * 60_000 + 1_000);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect((await world.call("echo", relative)).text).toContain("event: end");
    const { port } = world.platform.started;
    expect(url).toBe(`http://echo.acme.apps.localhost:${port}${relative}`);
  });

  it("is made by the client, whose URL is that of the deployment's own host", async () => {
    const { started, url } = world.platform;
    const own = `http://echo.acme.apps.localhost:${started.port}`;
    for (const options of [{ url: own }, { url, deployment: "acme/echo" }]) {
      const client = createClient({ ...options, token: token.value });
      const made = new URL((await client.work?.task(taskId).accessUrl("get")) ?? "");
      expect([made.origin, made.pathname]).toEqual([own, "/work/get"]);
      expect((await world.call("echo", made.pathname + made.search)).text).toBe("one x");
    }
  });

  it("is made over RPC and REST, too, by a session as by a token", async () => {
    const { tasks } = await world.callerClient();
    const made = await tasks.createTaskAccess({ deployment: "acme/echo", taskId });
    expect((await world.call("echo", made.path)).status).toBe(200);
    const rest = `/api/v1/tasks/${taskId}:createAccess`;
    const { json } = await world.platform.call(rest, { deployment: "acme/echo" }, world.cookie);
    expect((await world.call("echo", String(json.path))).status).toBe(200);
  });

  it("opens nothing else of its deployment", async () => {
    for (const [method, url] of [
      ["GET", path("arguments")],
      ["POST", path("cancel")],
      ["PUT", path("retry")],
      ["POST", path("access")],
      ["POST", path("submit")],
      ["POST", path("events")],
      ["POST", `/say?access=${access}`],
    ] as const) {
      expect([method, url, ...(await answerTo(url, method))]).toEqual([
        ...[method, url, 403, "ACCESS_DENIED"],
      ]);
    }
    for (const url of ["/docs.json", "/schema.json", "/metrics"]) {
      const [status, reason] = await answerTo(`${url}?access=${access}`);
      expect([url, status, reason]).toEqual([url, 401, "TOKEN_MISSING"]);
    }
    for (const url of [`/api/v1/tasks/${taskId}`, `/api/v1/tasks/${taskId}:watch`]) {
      const { status, text } = await world.call("echo", `${url}?access=${access}`);
      expect([url, status]).toEqual([url, 400]);
      expect(text).not.toContain(access);
    }
  });

  it("opens no other task, and nothing of another deployment", async () => {
    const another = await submit();
    for (const verb of ["events", "status", "get", "stream"]) {
      expect(await answerTo(path(verb, { id: another }))).toEqual([403, "ACCESS_DENIED"]);
      expect(await answerTo(path(verb, { id: "x" }))).toEqual([403, "ACCESS_DENIED"]);
      expect(await answerTo(path(verb), "GET", "other")).toEqual([403, "ACCESS_DENIED"]);
    }
    expect(await answerTo(`/say/status?task_id=${taskId}&access=${access}`)).toEqual([
      ...[404, "TASK_NOT_FOUND"],
    ]);
    expect(await answerTo(`/work/events?access=${access}`)).toEqual([400, "REQUEST_INVALID"]);
  });

  it("is refused when it was altered, made by another server, given twice, or not at all", async () => {
    const changed = access.slice(0, -1) + (access.endsWith("A") ? "Q" : "A");
    for (const text of [changed, access.slice(0, -4), "x", "", token.value]) {
      expect([text, ...(await answerTo(path("events", { text })))]).toEqual([
        ...[text, 401, "TOKEN_INVALID"],
      ]);
    }
    expect(await answerTo(`${path("events")}&access=${access}`)).toEqual([400, "REQUEST_INVALID"]);
    expect(await answerTo(`/work/events?task_id=${taskId}`)).toEqual([401, "TOKEN_MISSING"]);
  });

  it("does not make up for a header that is not valid, and is not made up for by a good one", async () => {
    const withHeader = async (authorization: string, text = access) => {
      const answer = await world.call("echo", path("status", { text }), {
        headers: { authorization },
      });
      return [answer.status, reasonOf(answer)];
    };
    expect(await withHeader("Bearer wrong")).toEqual([401, "TOKEN_INVALID"]);
    expect(await withHeader("Basic wrong")).toEqual([401, "TOKEN_MISSING"]);
    expect(await withHeader(`Bearer ${token.value}`)).toEqual([200, undefined]);
    expect(await withHeader(`Bearer ${token.value}`, "x")).toEqual([401, "TOKEN_INVALID"]);
  });

  it("is refused a quarter of an hour later", async () => {
    const keys = loadKeys({ path: join(world.folder.data, "keys.json") });
    const late = new TaskAccess({
      keys: (purpose) => keys.derived(purpose),
      recall: () => ({ kind: "anonymous" }),
      now: () => Date.now() - 15 * 60_000 - 1_000,
    });
    const { deploymentId } = late.open(access);
    const principal = { kind: "anonymous" } as const;
    const deployment = { deploymentId, authorization: true };
    const made = late.make({ principal, taskId, deployment });
    const answer = await world.call("echo", path("events", { text: made.access }));
    expect([answer.status, answer.text]).toEqual([401, expect.stringContaining("has expired")]);
  });

  it("is made only by who may read the task", async () => {
    const create = `/work/access?task_id=${taskId}`;
    const elsewhere = await newToken({ all_deployments: false, deployments: ["other"] });
    const developer = await newToken({
      access: ["developer_operations"],
      all_deployments: false,
    });
    expect(await answerTo(create, "POST")).toEqual([401, "TOKEN_MISSING"]);
    expect(reasonOf(await post(create, elsewhere.value))).toBe("DEPLOYMENT_NOT_FOUND");
    expect(reasonOf(await post(create, developer.value))).toBe("ACCESS_DENIED");
    expect(reasonOf(await post("/work/access?task_id=x"))).toBe("TASK_NOT_FOUND");
    expect(reasonOf(await post("/work/access"))).toBe("REQUEST_INVALID");
  });

  it("opens what whoever made it may read from where it comes, and no more", async () => {
    const here = await newToken({ allowed_networks: ["127.0.0.0/8"] });
    expect(await answerTo(path("status", { text: await accessTo(taskId, here.value) }))).toEqual([
      ...[200, undefined],
    ]);
    const moved = await newToken();
    const text = await accessTo(taskId, moved.value);
    const update = async (fields: object, mask: string) => {
      const { status } = await patch(`/api/v1/tokens/${moved.id}?update_mask=${mask}`, fields);
      expect(status).toBe(200);
    };
    await update({ allowed_networks: ["203.0.113.0/24"] }, "allowed_networks");
    expect(await answerTo(path("status", { text }))).toEqual([401, "TOKEN_INVALID"]);
    await update({ allowed_networks: [] }, "allowed_networks");
    expect(await answerTo(path("status", { text }))).toEqual([200, undefined]);
  });

  it("ends with its token, also for a stream that is open", { timeout: 30_000 }, async () => {
    const made = await newToken();
    const { json } = await callAfar("/hold/submit", { body: { forMs: 60_000 } });
    const create = `/hold/access?task_id=${json.task_id}`;
    const { path: events } = (await callAfar(create, { method: "POST", token: made.value })).json;
    const status = events.replace("/events", "/status");
    const open = world.call("afar", events);
    expect(await answerTo(status, "GET", "afar")).toEqual([200, undefined]);
    await remove(`/api/v1/tokens/${made.id}`);
    const answer = await world.call("afar", status);
    expect([answer.status, answer.text]).toEqual([401, expect.stringContaining("has ended")]);
    expect((await open).text).toMatch(/event: state[\s\S]*event: error\ndata: .*TOKEN_INVALID/);
    await callAfar(`/hold/cancel?task_id=${json.task_id}&abort=true`, { method: "POST" });
  });

  it("ends with the session that made it", async () => {
    const cookie = cookieIn(await world.platform.signIn("ada@example.com"));
    const rest = `/api/v1/tasks/${taskId}:createAccess`;
    const { json } = await world.platform.call(rest, { deployment: "acme/echo" }, cookie);
    expect((await world.call("echo", String(json.path))).status).toBe(200);
    await world.platform.call("/api/v1/auth:signOut", {}, cookie);
    expect(await answerTo(String(json.path))).toEqual([401, "TOKEN_INVALID"]);
  });

  it("made while the deployment was open ends when it is not any more", async () => {
    const { deployments } = await world.callerClient();
    const set = (authorization: boolean) =>
      deployments.updateDeployment({
        deployment: { name: "other", authorization },
        updateMask: { paths: ["authorization"] },
      });
    const id = await submit(0, "other");
    await set(false);
    const body = { task_id: id };
    const { json } = await world.call("other", "/work/access", { body });
    expect(await answerTo(json.path, "GET", "other")).toEqual([200, undefined]);
    expect(await answerTo(`/work/status?task_id=${id}&access=x`, "GET", "other")).toEqual([
      ...[401, "TOKEN_INVALID"],
    ]);
    await set(true);
    expect(await answerTo(json.path, "GET", "other")).toEqual([401, "TOKEN_INVALID"]);
  });

  it("is answered to pages of an allowed origin, and to no others", async () => {
    const from = (origin: string) =>
      world.call("echo", path("events"), { headers: { origin, "sec-fetch-site": "cross-site" } });
    const answer = await from(APP);
    expect(answer.headers["access-control-allow-origin"]).toBe(APP);
    const refused = await world.call("echo", path("events", { text: "x" }), {
      headers: { origin: APP },
    });
    expect(refused.headers["access-control-allow-origin"]).toBe(APP);
    const stranger = await from("https://stranger.example");
    expect(stranger.headers["access-control-allow-origin"]).toBeUndefined();
  });
});

const send = (method: string) => (url: string, body?: object) =>
  call(world.platform, "", url, {
    method,
    host: `localhost:${world.platform.started.port}`,
    headers: world.cookie,
    ...(body && { body }),
  });
const patch = send("PATCH");
const remove = send("DELETE");

function cookieIn({ headers }: { readonly headers: Headers }): Record<string, string> {
  return { cookie: headers.getSetCookie()[0]?.split(";", 1)[0] ?? "" };
}
