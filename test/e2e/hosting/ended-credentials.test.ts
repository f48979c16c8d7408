/**
 * Streams of every kind, in every protocol, end with the credential that opened them. What ends a
 * credential is done to a real node, which has five seconds to notice.
 */
import { request as httpRequest } from "node:http";
import { type CallOptions, ConnectError, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { OrganizationTaskService } from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { createTokenValue } from "../../../src/auth/token-format.ts";
import { bearer, cookieOf, PASSWORD } from "../start/platform.ts";
import { artifact, call, until, World } from "./world.ts";

/** What a stream may last beyond its credential. */
const MAX_LATE_MS = 5_000;

const DEPLOYMENT = "acme/endless";
const TARGET = { "tessera-deployment": DEPLOYMENT };

type Headers = Readonly<Record<string, string>>;

/** A stream that has said something; `ended` is the reason of its error, empty for none. */
interface Opened {
  readonly ended: Promise<string>;
  close(): void;
}

let world: World;
let taskId: string;
beforeAll(async () => {
  world = await World.start();
  const replicas = { minWorkers: 1, maxWorkers: 1 };
  await world.deployed("endless", await artifact("endless"), { authorization: true, ...replicas });
  await world.deployed("other", await artifact());
  const { value } = await newToken();
  const { json } = await post("/trickle/submit", bearer(value));
  taskId = json.task_id;
});
afterAll(() => world[Symbol.asyncDispose]());

const newToken = (fields: object = {}, cookie = world.cookie) =>
  world.platform.createToken(cookie, {
    access: ["developer_operations", "protected_endpoint"],
    all_deployments: true,
    ...fields,
  });

const post = (path: string, headers: Headers) =>
  call(world.platform, "endless", path, {
    body: {},
    headers: { ...headers, ...TARGET },
    host: `localhost:${world.platform.started.port}`,
  });

/** Streams of RPCs. */
const transports = () => {
  const baseUrl = world.platform.url;
  return {
    grpc: createGrpcTransport({ baseUrl }),
    web: createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    connect: createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    json: createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  };
};

type Rpc = (options: CallOptions) => AsyncIterable<unknown>;

async function openRpc(rpc: Rpc, headers: Headers): Promise<Opened> {
  const controller = new AbortController();
  const { signal } = controller;
  const messages = rpc({ headers: { ...headers, ...TARGET }, signal })[Symbol.asyncIterator]();
  await messages.next();
  const drain = async (): Promise<string> => {
    try {
      while ((await messages.next()).done !== true) {
        // The rest of it.
      }
      return "";
    } catch (thrown) {
      const [info] = ConnectError.from(thrown).findDetails(ErrorInfoSchema);
      return info?.reason ?? String(thrown);
    }
  };
  return { ended: drain(), close: () => controller.abort() };
}

/** Streams of HTTP, whose last event or line has the error. */
function openHttp(path: string, headers: Headers, method = "GET"): Promise<Opened> {
  const { port } = world.platform.started;
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method, agent: false as const };
    const sent = { ...headers, ...TARGET, "content-type": "application/json" };
    const req = httpRequest({ ...options, headers: sent }, (res) => {
      let text = "";
      const ended = new Promise<string>((end) => {
        res.on("end", () => end(/"reason":\s*"(\w+)"/.exec(text)?.[1] ?? ""));
        res.on("error", (err) => end(err.message));
      });
      const close = (): void => void req.destroy();
      res.on("data", (chunk) => {
        text += chunk;
        resolve({ ended, close });
      });
    });
    req.on("error", reject).end(method === "POST" ? "{}" : undefined);
  });
}

/** Those of a deployment, which ask for access to its endpoints. */
async function endpointStreams(headers: Headers): Promise<Record<string, Promise<Opened>>> {
  const { grpc, web, connect, json } = transports();
  const events = { accept: "text/event-stream" };
  return {
    "gRPC StreamEndpoint": openRpc(
      (options) =>
        createClient(EndpointService, grpc).streamEndpoint({ endpoint: "drip" }, options),
      headers,
    ),
    "Connect StreamEndpoint": openRpc(
      (options) =>
        createClient(EndpointService, json).streamEndpoint({ endpoint: "drip" }, options),
      headers,
    ),
    "gRPC StreamTask": openRpc(
      (options) => createClient(TaskService, grpc).streamTask({ taskId }, options),
      headers,
    ),
    "gRPC-Web WatchTask": openRpc(
      (options) => createClient(TaskService, web).watchTask({ taskId }, options),
      headers,
    ),
    "binary Connect WatchTask": openRpc(
      (options) => createClient(TaskService, connect).watchTask({ taskId }, options),
      headers,
    ),
    "REST :watch": openHttp(`/api/v1/tasks/${taskId}:watch`, headers),
    "REST :stream as events": openHttp(`/api/v1/tasks/${taskId}:stream`, { ...headers, ...events }),
    "/events": openHttp(`/trickle/events?task_id=${taskId}`, headers),
    "/stream": openHttp(`/trickle/stream?task_id=${taskId}`, headers),
    "a function's lines": openHttp("/drip", headers, "POST"),
    "a function's events": openHttp("/drip", { ...headers, ...events }, "POST"),
  };
}

/** Those of developers. */
function developerStreams(headers: Headers): Record<string, Promise<Opened>> {
  const { grpc, web } = transports();
  const follow = { deployment: "endless", follow: true, organization: "acme" };
  return {
    "gRPC WatchDeploymentLogs": openRpc(
      (options) => createClient(DeploymentService, grpc).watchDeploymentLogs(follow, options),
      headers,
    ),
    "REST logs": openHttp("/api/v1/deployments/endless/logs?follow=true", headers),
    "gRPC WatchDeployments": openRpc(
      (options) =>
        createClient(DeploymentService, grpc).watchDeployments({ organization: "acme" }, options),
      headers,
    ),
    "gRPC-Web WatchTasks": openRpc(
      (options) =>
        createClient(OrganizationTaskService, web).watchTasks({ organization: "acme" }, options),
      headers,
    ),
    "REST tasks:watch": openHttp("/api/v1/organizations/acme/tasks:watch", headers),
  };
}

/** A stream that the access of a task opened, which who sends the headers has made. */
async function accessStream(headers: Headers): Promise<Opened> {
  const { json } = await post(`/trickle/access?task_id=${taskId}`, headers);
  return openHttp(json.path, {});
}

async function open(streams: Record<string, Promise<Opened>>): Promise<Record<string, Opened>> {
  const names = Object.keys(streams);
  const opened = await Promise.all(Object.values(streams));
  return Object.fromEntries(names.map((name, index) => [name, opened[index] as Opened]));
}

/** The reasons with which streams ended in time; "goes on" for those that did not. */
async function reasonsOf(opened: Record<string, Opened>): Promise<Record<string, string>> {
  const late = new Promise<string>((resolve) =>
    setTimeout(() => resolve("goes on"), MAX_LATE_MS).unref(),
  );
  const reasons = await Promise.all(
    Object.entries(opened).map(async ([name, { ended }]) => [
      name,
      await Promise.race([ended, late]),
    ]),
  );
  for (const { close } of Object.values(opened)) {
    close();
  }
  return Object.fromEntries(reasons);
}

function all(opened: Record<string, Opened>, reason: string): Record<string, string> {
  return Object.fromEntries(Object.keys(opened).map((name) => [name, reason]));
}

const change = (method: string, path: string, body?: object) =>
  call(world.platform, "", path, {
    method,
    host: `localhost:${world.platform.started.port}`,
    headers: world.cookie,
    ...(body && { body }),
  });

async function changed(method: string, path: string, body?: object): Promise<void> {
  const { status, text } = await change(method, path, body);
  expect([status, text]).toEqual([200, expect.anything()]);
}

/** A person of the organization, with a session and a personal token. */
async function newPerson(email: string, role: string) {
  const invited = await world.platform.call(
    "/api/v1/members:invite",
    { email, role },
    world.cookie,
  );
  const joined = await world.platform.call("/api/v1/auth:acceptInvitation", {
    invitation_code: new URL(String(invited.json.url)).hash.replace("#code=", ""),
    password: PASSWORD,
  });
  expect(joined.status, JSON.stringify(joined.json)).toBe(200);
  const cookie = cookieOf(joined);
  const { value } = await newToken({ kind: "personal" }, cookie);
  return { cookie, token: bearer(value), userId: String(joined.json.user_id) };
}

describe("streams of every kind end", { timeout: 40_000 }, () => {
  it("when their token is deleted, and their functions are aborted", async () => {
    const { id, value } = await newToken();
    const { value: stays } = await newToken();
    const before = (await post("/aborted", bearer(stays))).json;
    const opened = await open({
      ...(await endpointStreams(bearer(value))),
      ...developerStreams(bearer(value)),
      "/events by an access": accessStream(bearer(value)),
    });
    const other = await open({ "a function's lines": openHttp("/drip", bearer(stays), "POST") });
    await changed("DELETE", `/api/v1/tokens/${id}`);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
    await until(
      async () => (await post("/aborted", bearer(stays))).json,
      (aborted) => aborted - before === 4,
    );
    expect(await reasonsOf(other)).toEqual(all(other, "goes on"));
  });

  it("when their token expires", async () => {
    const { value } = await newToken({ expires_at: new Date(Date.now() + 6_000).toISOString() });
    const opened = await open({
      ...(await endpointStreams(bearer(value))),
      ...developerStreams(bearer(value)),
      "/events by an access": accessStream(bearer(value)),
    });
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });

  it("when their token may call other deployments only, or comes from elsewhere", async () => {
    const [narrowed, moved] = [await newToken(), await newToken()];
    const opened = await open(await endpointStreams(bearer(narrowed.value)));
    const byAccess = await open({ "/events by an access": accessStream(bearer(narrowed.value)) });
    const far = await open({
      ...(await endpointStreams(bearer(moved.value))),
      ...developerStreams(bearer(moved.value)),
    });
    const path = (id: string, mask: string) => `/api/v1/tokens/${id}?update_mask=${mask}`;
    await changed("PATCH", path(narrowed.id, "all_deployments,deployments"), {
      all_deployments: false,
      deployments: ["other"],
    });
    await changed("PATCH", path(moved.id, "allowed_networks"), {
      allowed_networks: ["203.0.113.0/24"],
    });
    const reasons = await Promise.all([reasonsOf(opened), reasonsOf(byAccess), reasonsOf(far)]);
    expect(reasons).toEqual([
      all(opened, "ACCESS_DENIED"),
      all(byAccess, "TOKEN_INVALID"),
      all(far, "TOKEN_INVALID"),
    ]);
  });

  it("when their token has lost the access to what developers see", async () => {
    const { id, value } = await newToken();
    const opened = await open(developerStreams(bearer(value)));
    const calls = await open({ "a function's lines": openHttp("/drip", bearer(value), "POST") });
    await changed("PATCH", `/api/v1/tokens/${id}?update_mask=access`, {
      access: ["protected_endpoint"],
    });
    const reasons = await Promise.all([reasonsOf(opened), reasonsOf(calls)]);
    expect(reasons).toEqual([all(opened, "ACCESS_DENIED"), all(calls, "goes on")]);
  });

  it("when the owner of their token is demoted, where that takes something from them", async () => {
    const { token, userId } = await newPerson("bea@example.com", "admin");
    const opened = await open(developerStreams(token));
    const calls = await open({ "a function's lines": openHttp("/drip", token, "POST") });
    await changed("PATCH", `/api/v1/members/${userId}`, { role: "member" });
    const reasons = await Promise.all([reasonsOf(opened), reasonsOf(calls)]);
    expect(reasons).toEqual([all(opened, "ACCESS_DENIED"), all(calls, "goes on")]);
  });

  it("when the owner of their token is removed, or the person of their session", async () => {
    const { token, cookie, userId } = await newPerson("cem@example.com", "member");
    const byToken = await open({
      ...(await endpointStreams(token)),
      ...developerStreams(token),
      "/events by an access": accessStream(token),
    });
    const bySession = await open({
      ...(await endpointStreams(cookie)),
      ...developerStreams(cookie),
    });
    const byAccess = await open({ "/events by an access": accessStream(cookie) });
    await changed("DELETE", `/api/v1/members/${userId}`);
    const opened = [byToken, bySession, byAccess];
    expect(await Promise.all(opened.map(reasonsOf))).toEqual([
      all(byToken, "TOKEN_INVALID"),
      all(bySession, "ACCESS_DENIED"),
      all(byAccess, "TOKEN_INVALID"),
    ]);
  });

  it("when their session is signed out", async () => {
    const cookie = cookieOf(await world.platform.signIn("ada@example.com"));
    const opened = await open({
      ...(await endpointStreams(cookie)),
      ...developerStreams(cookie),
      "/events by an access": accessStream(cookie),
    });
    await world.platform.call("/api/v1/auth:signOut", {}, cookie);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });

  it("when their deployment asks for a token from now on", async () => {
    const update = (authorization: boolean) =>
      changed("PATCH", "/api/v1/deployments/endless?update_mask=authorization", { authorization });
    await update(false);
    const opened = await open(await endpointStreams({}));
    await update(true);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_MISSING"));
  });

  it("also for a caller whose address has guessed too often to be asked again", async () => {
    const { id, value } = await newToken();
    const opened = await open(await endpointStreams(bearer(value)));
    await changed("DELETE", `/api/v1/tokens/${id}`);
    const guesses = Array.from({ length: 50 }, () => createTokenValue("o"));
    const answers = await Promise.all(guesses.map((guess) => post("/aborted", bearer(guess))));
    expect(answers.at(-1)?.status).toBe(429);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });
});
