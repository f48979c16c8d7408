/** What a platform shows on the hosts of deployments: their surface, and nothing of its own. */
import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { FederationService } from "../../../gen/tessera/v1/federation_pb.js";
import { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { call, reasonOf } from "../hosting/world.ts";
import { Folder, PASSWORD, type Platform, start } from "./platform.ts";

const OF_THE_PLATFORM = [
  AuthService,
  OrganizationService,
  TokenService,
  LoginService,
  FederationService,
  DeploymentService,
].flatMap(({ methods }) => methods);

const CREDENTIALS = { email: "ada@example.com", password: PASSWORD };

/** Methods that paths do not take, and those that they take; pages of each kind of host apart. */
const REFUSED = [
  ["POST", "/livez", "GET, HEAD"],
  ["PUT", "/readyz", "GET, HEAD"],
  ["POST", "/docs.json", "GET, HEAD"],
  ["GET", "/tessera.v1.TaskService/SubmitTask", "POST"],
  ["DELETE", "/tessera.v1.TaskService/GetTask", "GET, POST"],
] as const;

describe("the host of a deployment", () => {
  let folder: Folder;
  let platform: Platform;
  let cookie: Record<string, string>;
  const ask = (path: string, options: Parameters<typeof call>[3] = {}) =>
    call(platform, "summarizer", path, options);

  beforeAll(async () => {
    folder = new Folder();
    platform = await start(folder, { env: { TESSERA_TRUSTED_PROXIES: "192.0.2.1" } });
    cookie = await platform.setUp();
  });
  afterAll(async () => {
    await platform[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it.each([...REFUSED, ["POST", "/", "GET, HEAD"], ["POST", "/metrics", "GET"]] as const)(
    "refuses %s %s with the methods that it takes",
    async (method, path, allow) => {
      const answer = await ask(path, { method });
      expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
      expect(reasonOf(answer)).toBe("METHOD_NOT_ALLOWED");
    },
  );

  it.each(OF_THE_PLATFORM.map((method) => ({ method, title: method.toString() })))(
    "does not answer over Connect: $title",
    async ({ method }) => {
      const path = `/${method.parent.typeName}/${method.name}`;
      for (const type of ["application/json", "application/proto", "application/connect+json"]) {
        const answer = await ask(path, { method: "POST", headers: { "content-type": type } });
        expect(answer.text, type).toContain("unimplemented");
      }
    },
  );

  it.each(OF_THE_PLATFORM.map((method) => ({ method, title: method.toString() })))(
    "does not answer over gRPC: $title",
    async ({ method }) => {
      const session = connect(platform.url);
      const stream = session.request({
        ":method": "POST",
        ":path": `/${method.parent.typeName}/${method.name}`,
        ":authority": `summarizer.acme.apps.localhost:${platform.started.port}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
      stream.once("response", resolve).once("error", reject).resume();
      stream.end(Buffer.alloc(5));
      expect((await promise)["grpc-status"]).toBe("12");
      session.destroy();
    },
  );

  it.each(["/api/v1/me", "/api/v1/tokens", "/api/v1/organizations", "/api/v1/deployments"])(
    "does not answer over REST: %s",
    async (path) => {
      const answer = await ask(path, { headers: cookie });
      expect(answer.status).toBe(404);
      expect(reasonOf(answer)).toBe("ROUTE_NOT_FOUND");
    },
  );

  it("signs nobody in", async () => {
    for (const path of ["/api/v1/auth:signIn", "/tessera.v1.AuthService/SignIn"]) {
      const answer = await ask(path, { body: CREDENTIALS });
      expect([404, 501]).toContain(answer.status);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
  });

  it("is not taken for the platform's by who says that it was forwarded", async () => {
    const headers = { "x-forwarded-host": "localhost" };
    const answer = await ask("/api/v1/auth:signIn", { body: CREDENTIALS, headers });
    expect(answer.status).toBe(404);
  });

  it("has what is called on deployments", async () => {
    const { value: token } = await platform.createToken(cookie);
    expect(reasonOf(await ask("/api/v1/tasks", { token }))).toBe("DEPLOYMENT_NOT_FOUND");
    for (const { typeName } of [TaskService, EndpointService]) {
      const method = typeName === TaskService.typeName ? "ListTasks" : "ListEndpoints";
      const answer = await ask(`/${typeName}/${method}`, { body: {}, token });
      expect(reasonOf(answer)).toBe("DEPLOYMENT_NOT_FOUND");
    }
    const health = await ask("/grpc.health.v1.Health/List", { body: {} });
    expect(Object.keys(health.json.statuses).sort()).toEqual([
      "",
      "tessera.v1.EndpointService",
      "tessera.v1.TaskService",
    ]);
  });

  it("reflects what it has", async () => {
    const message = Buffer.from(JSON.stringify({ listServices: "" }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    const path = `/${ServerReflection.typeName}/ServerReflectionInfo`;
    const headers = {
      "content-type": "application/connect+json",
      host: `summarizer.acme.apps.localhost:${platform.started.port}`,
    };
    const session = connect(platform.url);
    const { host, ...rest } = headers;
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      ":authority": host,
      ...rest,
    });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk)).end(Buffer.concat([head, message]));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    stream.once("end", resolve).once("error", reject);
    await promise;
    session.destroy();
    const text = Buffer.concat(chunks).toString();
    expect(text).toContain("tessera.v1.TaskService");
    expect(text).not.toContain("tessera.v1.AuthService");
  });

  it.each([
    ...REFUSED,
    ["DELETE", "/docs", "GET, HEAD"],
    ["DELETE", "/reference", "GET, HEAD"],
    ["GET", "/tessera.v1.TokenService/CreateToken", "POST"],
    ["POST", "/metrics", "GET"],
  ] as const)("on the platform's own, %s %s is refused as here", async (method, path, allow) => {
    const answer = await ask(path, { method, host: `localhost:${platform.started.port}` });
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    expect(reasonOf(answer)).toBe("METHOD_NOT_ALLOWED");
  });

  it("leaves the platform's own as they were", async () => {
    expect((await platform.call("/api/v1/me", undefined, cookie)).status).toBe(200);
    expect((await platform.signIn(CREDENTIALS.email)).status).toBe(200);
  });
});
