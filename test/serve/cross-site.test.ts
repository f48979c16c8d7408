import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

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

it("a server with a token serves other sites, whose pages cannot know it", async () => {
  await using served = await serve("calls", { token: "a-token-for-tests" });
  const headers = { authorization: "Bearer a-token-for-tests", origin: "https://app.example" };
  expect((await served.post("/repeat", { text: "a" }, headers)).text).toBe("a");
});
