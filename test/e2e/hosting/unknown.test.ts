/** What callers learn of deployments that are not theirs: nothing, not even whether they exist. */
import { once } from "node:events";
import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, artifact, CALLS, World } from "./world.ts";

const JSON_TYPE = { "content-type": "application/json" };

/** Every way to ask a deployment, on its own host. */
const ASKED = [
  ...CALLS,
  ["GET", "/metrics"],
  ["GET", "/"],
  ["GET", "/readyz"],
  ["POST", "/tessera.v1.TaskService/GetTask"],
] as const;

/** The same by the request's own field or header, on the platform's host. */
const NAMED = [
  ["GET", "/api/v1/tasks?deployment=acme/NAME"],
  ["GET", "/api/v1/endpoints?deployment=acme/NAME"],
  ["POST", "/tessera.v1.TaskService/ListTasks"],
  ["POST", "/say"],
] as const;

describe("of deployments of others", () => {
  let world: World;
  let foreign: string;
  let limited: string;

  beforeAll(async () => {
    world = await World.start();
    await world.deployed("echo", await artifact(), { authorization: true });
    await world.deployed("mine", await artifact(), { authorization: true });
    await world.deployed("open", await artifact());
    const { platform, cookie } = world;
    const made = await platform.call("/api/v1/organizations", { name: "beta" }, cookie);
    expect(made.status, JSON.stringify(made.json)).toBe(200);
    const access = ["developer_operations", "protected_endpoint"];
    const inBeta = { organization: "beta", access, all_deployments: true };
    foreign = (await platform.createToken(cookie, inBeta)).value;
    const forOne = { organization: "acme", access: ["protected_endpoint"], deployments: ["mine"] };
    limited = (await platform.createToken(cookie, forOne)).value;
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** What tells answers apart, without the name that was asked for. */
  const said = ({ status, headers, text }: Answer, name: string) => ({
    status,
    headers: Object.keys(headers).sort(),
    challenge: headers["www-authenticate"],
    text: text
      .replaceAll(name, "NAME")
      .replace(/"request_?[iI]d":"\w+"/g, "")
      .replace(/"value":"[^"]+"/g, ""),
  });

  const onHost = async (name: string, token?: string) => {
    const answers: [string, ReturnType<typeof said>][] = [];
    for (const [method, path] of ASKED) {
      // RPCs refuse unknown fields while they read the message.
      const post = method === "POST" && { body: path.includes("Service/") ? {} : { text: "x" } };
      const credential = token !== undefined && { token };
      const answer = await world.call(name, path, { method, ...post, ...credential });
      answers.push([path, said(answer, name)]);
    }
    return answers;
  };

  const byName = async (name: string, token?: string) => {
    const answers: [string, ReturnType<typeof said>][] = [];
    for (const [method, path] of NAMED) {
      const isByHeader = !path.includes("NAME");
      const answer = await world.call("", path.replace("NAME", name), {
        method,
        host: "localhost",
        ...(method === "POST" && { body: path === "/say" ? { text: "x" } : {} }),
        ...(token !== undefined && { token }),
        headers: { ...JSON_TYPE, ...(isByHeader && { "tessera-deployment": `acme/${name}` }) },
      });
      answers.push([path, said(answer, name)]);
    }
    return answers;
  };

  const overGrpc = async (name: string, token?: string) => {
    const { port } = world.platform.started;
    const session = connect(world.platform.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/tessera.v1.TaskService/ListTasks",
      ":authority": `${name}.acme.apps.localhost:${port}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    });
    stream.end(Buffer.alloc(5)).resume();
    const [trailers] = await once(stream, "trailers");
    session.destroy();
    return [trailers["grpc-status"], String(trailers["grpc-message"]).replaceAll(name, "NAME")];
  };

  const statuses = (answers: [string, { readonly status: number }][]) =>
    new Set(answers.filter(([path]) => path !== "/readyz").map(([, { status }]) => status));

  it("callers without a credential learn nothing: 401 for each, there or not", async () => {
    const hidden = await onHost("echo");
    expect(await onHost("none")).toEqual(hidden);
    expect(statuses(hidden)).toEqual(new Set([401]));
    const named = await byName("echo");
    expect(await byName("none")).toEqual(named);
    expect(statuses(named)).toEqual(new Set([401]));
    expect(await overGrpc("none")).toEqual(await overGrpc("echo"));
    expect((await overGrpc("echo"))[0]).toBe("16");
  });

  it("a token of another organization learns nothing: 404 for each", async () => {
    const hidden = await onHost("echo", foreign);
    expect(await onHost("none", foreign)).toEqual(hidden);
    expect(statuses(hidden)).toEqual(new Set([404]));
    const named = await byName("echo", foreign);
    expect(await byName("none", foreign)).toEqual(named);
    expect(statuses(named)).toEqual(new Set([404]));
    expect(await overGrpc("none", foreign)).toEqual(await overGrpc("echo", foreign));
    expect((await overGrpc("echo", foreign))[0]).toBe("5");
  });

  it("neither does a token of the organization that is for other deployments", async () => {
    expect((await world.call("mine", "/schema.json", { token: limited })).status).toBe(200);
    const hidden = await onHost("echo", limited);
    expect(await onHost("none", limited)).toEqual(hidden);
    expect(statuses(hidden)).toEqual(new Set([404]));
    expect(JSON.stringify(hidden)).not.toContain("mine");
  });

  it("what is open is open to all of them, and its page is found", async () => {
    for (const token of [undefined, foreign, limited]) {
      const options = token === undefined ? {} : { token };
      const answer = await world.call("open", "/say", { body: { text: "x" }, ...options });
      expect(answer).toMatchObject({ status: 200, text: "one x" });
      expect((await world.call("open", "/", options)).status).toBe(200);
    }
  });

  it("readiness is the node's for strangers, and the deployment's for its callers", async () => {
    await world.client.deployments.stopDeployment({ deployment: "mine" });
    const asked = async (token?: string) =>
      (await world.call("mine", "/readyz", token === undefined ? {} : { token })).status;
    await expect.poll(() => asked(limited), { timeout: 20_000 }).toBe(503);
    expect(await asked()).toBe(200);
    expect(await asked(foreign)).toBe(404);
  });

  it("the page of a protected deployment comes with 401, and with what asks for a token", async () => {
    const page = await world.call("echo", "/");
    expect(page.headers["content-type"]).toContain("text/html");
    const script = /src="\.\/(assets\/[^"]+)"/.exec(page.text)?.[1];
    expect(script).toBeDefined();
    expect((await world.call("echo", `/${script}`)).status).toBe(200);
  });
});
