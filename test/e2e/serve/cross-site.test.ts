import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { refusal } from "./refusal.ts";
import { type Served, type Shown, serve } from "./served.ts";

const denied = { status: 403, code: "permission_denied", reason: "ACCESS_DENIED" };
const JSON_BODY = { "content-type": "application/json" };

describe("a server without a token", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve("calls");
  });
  afterAll(() => served.stop());

  const paths = [
    ["the data plane", "POST", "/repeat"],
    ["the data plane", "PUT", "/sum/cancel?task_id=x"],
    ["REST", "POST", "/api/v1/tasks"],
    ["Connect", "POST", "/tessera.v1.EndpointService/ListEndpoints"],
  ] as const;
  const elsewhere: Record<string, string>[] = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://localhost:1" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ];

  it.each(paths)(
    "refuses what comes from pages of other sites: %s, %s %s",
    async (_, method, path) => {
      for (const headers of elsewhere) {
        const answer = await served.raw(method, path, { ...JSON_BODY, ...headers });
        const found = refusal(answer);
        expect(found).toMatchObject(denied);
        expect(found.message).toContain("--token");
      }
    },
  );

  it("refuses gRPC-Web of other sites", async () => {
    const fromElsewhere: Interceptor = (next) => (req) => {
      req.header.set("origin", "https://evil.example");
      return next(req);
    };
    const transport = createGrpcWebTransport({
      baseUrl: served.origin,
      httpVersion: "1.1",
      interceptors: [fromElsewhere],
    });
    const { listEndpoints } = createClient(EndpointService, transport);
    const err = ConnectError.from(await listEndpoints({}).catch((thrown) => thrown));
    expect(err.code).toBe(Code.PermissionDenied);
  });

  it("serves its own page, also behind a proxy that changes the host", async () => {
    const { host, origin } = new URL(served.origin);
    const headersOfPage: Record<string, string>[] = [
      { host, origin },
      { host, origin, "sec-fetch-site": "same-origin" },
      { origin: "https://tessera.example", "sec-fetch-site": "same-origin" },
    ];
    for (const headers of headersOfPage) {
      const answer = await served.raw("POST", "/sum/submit", headers);
      expect(answer.status, JSON.stringify(headers)).not.toBe(403);
    }
  });

  it("serves programs, which send neither header, and whatever only reads", async () => {
    expect((await served.post("/repeat", { text: "a" })).status).toBe(200);
    for (const headers of elsewhere) {
      expect((await served.get("/schema.json", headers)).status).toBe(200);
    }
  });
});

describe.each([
  ["without a token", undefined],
  ["with a token", "a-token-for-tests"],
])("a server %s that names the origin of an app", (_, token) => {
  const APP = "https://app.example";
  const cors = { origin: APP, "sec-fetch-site": "cross-site" };
  const own: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  let served: Served;
  beforeAll(async () => {
    served = await serve("calls", { allowedOrigins: [APP], ...(token && { token }) });
  });
  afterAll(() => served.stop());

  it("answers the browser's question beforehand, without a token, on every path", async () => {
    for (const path of ["/repeat", "/sum/submit", "/sum/get?task_id=x", "/api/v1/tasks", "/none"]) {
      const headers = {
        origin: APP,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,idempotency-key",
      };
      const { status, headers: answered } = await served.raw("OPTIONS", path, headers);
      expect(status, path).toBe(204);
      expect(answered.get("access-control-allow-origin")).toBe(APP);
      expect(answered.get("access-control-allow-methods")).toBe("GET, HEAD, POST, PUT");
      expect(answered.get("access-control-allow-headers")).toMatch(
        /Authorization, Content-Type, Idempotency-Key/,
      );
      expect(answered.get("vary")).toBe("Origin, Access-Control-Request-Headers");
      expect(answered.has("access-control-allow-credentials")).toBe(false);
    }
  });

  it("lets its pages send what they ask for, in names of headers", async () => {
    const headers = {
      origin: APP,
      "access-control-request-method": "POST",
      "access-control-request-headers": "baggage,sentry-trace,x-tenant,b@d",
    };
    const { headers: answered } = await served.raw("OPTIONS", "/repeat", headers);
    const allowed = answered.get("access-control-allow-headers")?.toLowerCase().split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["baggage", "sentry-trace", "x-tenant"]));
    expect(allowed).not.toContain("b@d");
  });

  it("serves its pages, which may read what they need, errors too", async () => {
    const answer = await served.post("/sum/submit", { numbers: [1] }, { ...own, ...cors });
    const { task_id: id } = answer.json as Shown;
    const refused = await served.post("/repeat", { text: 1 }, { ...own, ...cors });
    const rpc = "/tessera.v1.EndpointService/ListEndpoints";
    const list = await served.post(rpc, {}, { ...own, ...cors });
    const got = await served.get(`/sum/get?task_id=${id}&wait=30`, { ...own, ...cors });
    const events = await served.get(`/sum/events?task_id=${id}`, { ...own, ...cors });
    const all = [answer, refused, list, got, events];
    expect(all.map(({ status }) => status)).toEqual([202, 400, 200, 200, 200]);
    for (const { headers } of all) {
      expect(headers.get("access-control-allow-origin")).toBe(APP);
      expect(headers.get("access-control-expose-headers")).toMatch(
        /Location, Retry-After, Idempotent-Replayed.*X-Request-Id/,
      );
      expect(headers.get("vary")).toContain("Origin");
    }
  });

  it("says to a page of the app that its token is wrong, where one is asked for", async () => {
    const wrong = { authorization: "Bearer something-else", ...cors };
    const answer = await served.post("/repeat", { text: "a" }, wrong);
    expect(answer.status).toBe(token ? 401 : 200);
    expect(answer.headers.get("access-control-allow-origin")).toBe(APP);
  });

  it("gives nothing to other pages", async () => {
    for (const origin of [
      "https://evil.example",
      "null",
      `${APP}.evil.example`,
      "http://app.example",
    ]) {
      const asked = { origin, "access-control-request-method": "POST" };
      const answers = [
        await served.raw("OPTIONS", "/repeat", asked),
        await served.post(
          "/repeat",
          { text: "a" },
          { origin, "sec-fetch-site": "cross-site", ...own },
        ),
      ];
      for (const { headers } of answers) {
        expect(headers.has("access-control-allow-origin"), origin).toBe(false);
      }
      expect(answers[0]?.status).not.toBe(204);
      expect(answers[1]?.status).toBe(token ? 200 : 403);
    }
  });
});

it("a server for all origins serves every page, and never with its cookies", async () => {
  await using served = await serve("calls", { allowedOrigins: ["*"] });
  for (const origin of ["https://one.example", "null"]) {
    const headers = { origin, "sec-fetch-site": "cross-site" };
    const answer = await served.post("/repeat", { text: "a" }, headers);
    expect(answer.text).toBe("a");
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
  }
});

it("a server without the setting says nothing of other origins", async () => {
  await using served = await serve("calls", { token: "a-token-for-tests" });
  const headers = { origin: "https://app.example", "access-control-request-method": "POST" };
  const answer = await served.raw("OPTIONS", "/repeat", headers);
  expect(answer.status).toBe(401);
  expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual(
    [],
  );
});

it("a server with a token serves other sites, whose pages cannot know it", async () => {
  await using served = await serve("calls", { token: "a-token-for-tests" });
  const headers = { authorization: "Bearer a-token-for-tests", origin: "https://app.example" };
  expect((await served.post("/repeat", { text: "a" }, headers)).text).toBe("a");
});
