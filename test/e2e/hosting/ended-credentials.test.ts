/**
 * Streams of every kind, in every protocol, end with the credential that opened them. What ends a
 * credential is done to a real node, which has five seconds to notice.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTokenValue } from "../../../src/auth/token-format.ts";
import { bearer, cookieOf, PASSWORD } from "../start/platform.ts";
import {
  all,
  developerStreams,
  endpointStreams,
  type Headers,
  type Opened,
  open,
  openHttp,
  reasonsOf,
  TARGET,
} from "./streams.ts";
import { artifact, call, until, World } from "./world.ts";

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

const streams = (headers: Headers) => endpointStreams(world.platform, { taskId, headers });
const developers = (headers: Headers) => developerStreams(world.platform, headers);
const lines = (headers: Headers) => openHttp(world.platform, "/drip", { headers, method: "POST" });

/** A stream that the access of a task opened, which who sends the headers has made. */
async function accessStream(headers: Headers): Promise<Opened> {
  const { json } = await post(`/trickle/access?task_id=${taskId}`, headers);
  return openHttp(world.platform, json.path, { headers: {} });
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
      ...streams(bearer(value)),
      ...developers(bearer(value)),
      "/events by an access": accessStream(bearer(value)),
    });
    const other = await open({ "a function's lines": lines(bearer(stays)) });
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
      ...streams(bearer(value)),
      ...developers(bearer(value)),
      "/events by an access": accessStream(bearer(value)),
    });
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });

  it("when their token may call other deployments only, or comes from elsewhere", async () => {
    const [narrowed, moved] = [await newToken(), await newToken()];
    const opened = await open(streams(bearer(narrowed.value)));
    const byAccess = await open({ "/events by an access": accessStream(bearer(narrowed.value)) });
    const far = await open({
      ...streams(bearer(moved.value)),
      ...developers(bearer(moved.value)),
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
    const opened = await open(developers(bearer(value)));
    const calls = await open({ "a function's lines": lines(bearer(value)) });
    await changed("PATCH", `/api/v1/tokens/${id}?update_mask=access`, {
      access: ["protected_endpoint"],
    });
    const reasons = await Promise.all([reasonsOf(opened), reasonsOf(calls)]);
    expect(reasons).toEqual([all(opened, "ACCESS_DENIED"), all(calls, "goes on")]);
  });

  it("when the owner of their token is demoted, where that takes something from them", async () => {
    const { token, userId } = await newPerson("bea@example.com", "admin");
    const opened = await open(developers(token));
    const calls = await open({ "a function's lines": lines(token) });
    await changed("PATCH", `/api/v1/members/${userId}`, { role: "member" });
    const reasons = await Promise.all([reasonsOf(opened), reasonsOf(calls)]);
    expect(reasons).toEqual([all(opened, "ACCESS_DENIED"), all(calls, "goes on")]);
  });

  it("when the owner of their token is removed, or the person of their session", async () => {
    const { token, cookie, userId } = await newPerson("cem@example.com", "member");
    const byToken = await open({
      ...streams(token),
      ...developers(token),
      "/events by an access": accessStream(token),
    });
    const bySession = await open({
      ...streams(cookie),
      ...developers(cookie),
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
      ...streams(cookie),
      ...developers(cookie),
      "/events by an access": accessStream(cookie),
    });
    await world.platform.call("/api/v1/auth:signOut", {}, cookie);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });

  it("when their deployment asks for a token from now on", async () => {
    const update = (authorization: boolean) =>
      changed("PATCH", "/api/v1/deployments/endless?update_mask=authorization", { authorization });
    await update(false);
    const opened = await open(streams({}));
    await update(true);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_MISSING"));
  });

  it("also for a caller whose address has guessed too often to be asked again", async () => {
    const { id, value } = await newToken();
    const opened = await open(streams(bearer(value)));
    await changed("DELETE", `/api/v1/tokens/${id}`);
    const guesses = Array.from({ length: 50 }, () => createTokenValue("o"));
    const answers = await Promise.all(guesses.map((guess) => post("/aborted", bearer(guess))));
    expect(answers.at(-1)?.status).toBe(429);
    expect(await reasonsOf(opened)).toEqual(all(opened, "TOKEN_INVALID"));
  });
});
