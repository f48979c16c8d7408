import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { createClient, createContextValues } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FederationService } from "../../../gen/tessera/v1/federation_pb.js";
import { federationService, monitoredBy } from "../../../src/api/federation.ts";
import type { Principal } from "../../../src/auth/principal.ts";
import { problem } from "../../../src/errors.ts";
import { createLog } from "../../../src/log/pino.ts";
import { Federation } from "../../../src/metrics/federation.ts";
import { Metrics } from "../../../src/metrics/metrics.ts";
import { monitoringPlugin } from "../../../src/server/monitoring/plugin.ts";
import { register } from "../../../src/server/rpc/engine/invoker.ts";
import { createServer } from "../../../src/server/server.ts";
import { session, token } from "../../auth/principals.ts";
import { sampleLines } from "../../metrics/fixture.ts";
import { RealPrometheus } from "../../metrics/prometheus.ts";

const ACME = { organizationId: "acme-id", organization: "acme", deployment: "digits" };
const GLOBEX = { organizationId: "globex-id", organization: "globex", deployment: "digits" };

const monitoring = token("organization", "monitoring");
const PRINCIPALS: { readonly [token: string]: Principal } = {
  monitoring,
  globex: { ...monitoring, organizationId: "globex-id", organization: "globex" },
  developer: token("organization", "both"),
  personal: token("personal", "developer"),
  session: session("admin"),
};

const metrics = new Metrics({ node: "n1", now: Date.now });
const federation = new Federation({
  metrics,
  now: Date.now,
  externalLabels: { region: "eu" },
});
let isReady = true;
let origin: string;
let port: number;
const resources = new AsyncDisposableStack();

beforeAll(async () => {
  for (const measured of [ACME, GLOBEX]) {
    const deployment = metrics.deployment(measured);
    deployment.taskSubmitted(`of-${measured.organization}`);
    deployment.queueObserved("run", { queued: 5, running: 1, oldestSeconds: 2.5 });
    deployment.requestFinished("run", { protocol: "http", code: "ok", seconds: 0.1 });
  }
  const { app, listener } = await createServer({
    services: [register(FederationService, federationService(federation))],
    authenticate: ({ authorization }) => {
      const principal = PRINCIPALS[authorization?.replace("Bearer ", "") ?? ""];
      if (authorization !== undefined && principal === undefined) {
        throw problem("TOKEN_INVALID", "the token is not valid");
      }
      return principal ?? { kind: "anonymous" };
    },
    standalone: false,
    sameSiteOnly: false,
    platformDomain: "tessera.test",
    plugins: [
      (server, { contextValues }) =>
        monitoringPlugin(server, {
          metrics,
          federation,
          contextValues: (req) => contextValues(req, FederationService.method.federate),
          monitored: monitoredBy,
          isReady: () => isReady,
        }),
    ],
    health: { status: () => "SERVING", onChange: () => () => undefined },
    log: createLog("silent"),
    bodyBudgetBytes: 1_000_000,
    accessLog: undefined,
    shutdownSignal: new AbortController().signal,
  });
  resources.defer(async () => {
    await listener.close(100);
    await app.close();
  });
  await new Promise<void>((resolve) => void listener.server.listen(0, "127.0.0.1", resolve));
  port = (listener.server.address() as AddressInfo).port;
  origin = `http://127.0.0.1:${port}`;
});

afterAll(() => resources.disposeAsync());

const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

async function get(path: string, headers: Record<string, string> = bearer("monitoring")) {
  const res = await fetch(origin + path, { headers });
  return { status: res.status, headers: res.headers, text: await res.text() };
}

const federate = (query: string, headers?: Record<string, string>) =>
  get(`/federate${query}`, headers);

describe("GET /federate", () => {
  it("answers the organization's series in the text format", async () => {
    const { status, headers, text } = await federate(
      "?match[]=tessera_queue_length&match%5B%5D=%7Bendpoint%3D%22of-acme%22%7D",
    );
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(sampleLines(text)).toEqual([
      'tessera_queue_length{deployment="digits",endpoint="run",node="n1",organization="acme",instance="",region="eu"} 5',
      'tessera_tasks_submitted_total{deployment="digits",endpoint="of-acme",node="n1",organization="acme",instance="",region="eu"} 1',
    ]);
  });

  it("answers another organization's token with that organization's series", async () => {
    const { text } = await federate("?match[]=tessera_tasks_submitted_total", bearer("globex"));
    expect(sampleLines(text)).toEqual([expect.stringContaining('endpoint="of-globex"')]);
  });

  it.each(["", "?", "?other=1", "?match[]=%7B%7D", "?match[]=nothing", "?match=up"])(
    "answers nothing for %j",
    async (query) => {
      expect(await federate(query)).toMatchObject({ status: 200, text: "" });
    },
  );

  it("compresses when asked to", async () => {
    const path = "/federate?match[]=%7B__name__%3D~%22.%2B%22%7D";
    const plain = await get(path, { ...bearer("monitoring"), "accept-encoding": "identity" });
    const { headers, body } = await raw(path, { "accept-encoding": "deflate, gzip;q=0.5" });
    expect(headers["content-encoding"]).toBe("gzip");
    expect(sampleLines(gunzipSync(body).toString())).toHaveLength(sampleLines(plain.text).length);
    const refusing = await raw(path, { "accept-encoding": "gzip;q=0, identity" });
    expect(refusing.headers["content-encoding"]).toBeUndefined();
  });

  it.each([
    ["?match[]=up%5B5m%5D", '1:3: parse error: unexpected "["\n'],
    ["?match[]=", "1:1: parse error: unexpected end of input\n"],
    ["?match[]", "1:1: parse error: unexpected end of input\n"],
    ["?match[]=%7Ba%3D~%22(%22%7D", /^1:2: parse error: error parsing regexp: missing closing \)/],
    ["?match[]=up&match[]=%7Ba", "1:3: parse error: unexpected end of input inside braces\n"],
    ["?match[]=%zz", 'error parsing form values: invalid URL escape "%zz"\n'],
    ["?match[]=%f", 'error parsing form values: invalid URL escape "%f"\n'],
    ["?match[]=up;x", "error parsing form values: invalid semicolon separator in query\n"],
    ["?match[]=%ff", "error parsing form values: invalid UTF-8 in query\n"],
  ])("says in plain text what is wrong with %s", async (query, message) => {
    const { status, headers, text } = await federate(query);
    expect([status, headers.get("content-type")]).toEqual([400, "text/plain; charset=utf-8"]);
    expect(text).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
  });

  it("answers 10,000 selectors at once, with a refusal", async () => {
    const query = Array.from({ length: 10_000 }, (_, index) => `match[]=m${index}`).join("&");
    const { status } = await federate(`?${query}`);
    // What is longer than all headers may be is refused before anybody reads it.
    expect([400, 431]).toContain(status);
    const app = fastify({ http: { maxHeaderSize: 1_000_000 } });
    await monitoringPlugin(app, {
      metrics,
      federation,
      contextValues: () => createContextValues(),
      monitored: () => ACME,
      isReady: () => true,
    });
    const { statusCode, body } = await app.inject(`/federate?${query}`);
    expect([statusCode, body]).toEqual([
      400,
      "there are 10000 selectors, and 1000 are allowed: join them with =~ and |\n",
    ]);
    await app.close();
  });

  it("parses before it looks whether it is ready", async () => {
    isReady = false;
    try {
      expect(await federate("?match[]=up")).toMatchObject({ status: 503 });
      expect(await federate("?match[]=up%5B")).toMatchObject({ status: 400 });
    } finally {
      isReady = true;
    }
  });

  it.each(["POST", "PUT", "DELETE", "PATCH", "HEAD"])("refuses %s", async (method) => {
    const headers = bearer("monitoring");
    const res = await fetch(`${origin}/federate?match[]=up`, { method, headers });
    expect([res.status, res.headers.get("allow")]).toEqual([405, "GET"]);
  });

  it.each([
    ["nobody", {}, 401],
    ["a token that does not exist", bearer("wrong"), 401],
    ["a token for endpoints and operations", bearer("developer"), 403],
    ["a personal token", bearer("personal"), 403],
    ["an admin's session", bearer("session"), 403],
  ] as const)("refuses %s", async (_who, headers, status) => {
    expect((await federate("?match[]=up", headers)).status).toBe(status);
    // Who may not ask is not told what is wrong with the question.
    expect((await federate("?match[]=up%5B", headers)).status).toBe(status);
  });

  it("does not know another organization's host", async () => {
    const own = await raw("/federate?match[]=tessera_workers", { host: "acme.tessera.test" });
    const other = await raw("/federate?match[]=tessera_workers", { host: "globex.tessera.test" });
    expect([own.status, other.status]).toEqual([200, 404]);
  });
});

describe("GET /metrics", () => {
  const OPERATOR = "of-the-operator";

  async function metricsApp(operatorToken?: string) {
    const app = fastify();
    await monitoringPlugin(app, {
      metrics,
      federation,
      contextValues: () => {
        throw problem("INTERNAL", "not asked here");
      },
      monitored: monitoredBy,
      isReady: () => true,
      ...(operatorToken !== undefined && { operatorToken }),
    });
    return {
      get: (headers: Record<string, string> = {}) => app.inject({ url: "/metrics", headers }),
      [Symbol.asyncDispose]: () => app.close(),
    };
  }

  it("shows the operator every organization's numbers", async () => {
    await using app = await metricsApp(OPERATOR);
    const { statusCode, body } = await app.get({ authorization: `Bearer ${OPERATOR}` });
    expect(statusCode).toBe(200);
    expect(body).toContain("# TYPE tessera_request_duration_seconds histogram\n");
    expect(body).toContain('organization="acme"');
    expect(body).toContain('organization="globex"');
  });

  it("asks for the operator's token", async () => {
    await using app = await metricsApp(OPERATOR);
    for (const headers of [
      {},
      { authorization: "Bearer wrong" },
      { authorization: "Bearer of the operator" },
    ]) {
      expect((await app.get(headers as Record<string, string>)).statusCode).toBe(401);
    }
  });

  it("answers nobody where no token is set, because deployments' code is on this machine too", async () => {
    await using app = await metricsApp();
    expect((await app.get()).statusCode).toBe(403);
    expect((await app.get({ authorization: "Bearer undefined" })).statusCode).toBe(403);
  });
});

describe("FederationService.Federate", () => {
  const transports = {
    gRPC: () => createGrpcTransport({ baseUrl: origin }),
    Connect: () => createConnectTransport({ baseUrl: origin, httpVersion: "1.1" }),
  };

  it.each(Object.entries(transports))("is the same over %s", async (_name, transport) => {
    const client = createClient(FederationService, transport());
    const parts: Uint8Array[] = [];
    const match = ["tessera_queue_length", '{endpoint="of-acme"}'];
    for await (const { contentType, data } of client.federate(
      { match },
      { headers: bearer("monitoring") },
    )) {
      expect(contentType).toMatch(/^text\/plain; version=0.0.4/);
      parts.push(data);
    }
    const text = Buffer.concat(parts).toString();
    expect(sampleLines(text)).toHaveLength(2);
  });

  it.each(Object.entries(transports))(
    "refuses a wrong selector over %s",
    async (_name, transport) => {
      const client = createClient(FederationService, transport());
      const call = async (match: string[], name = "monitoring") => {
        for await (const _ of client.federate({ match }, { headers: bearer(name) })) {
          // Nothing is expected to come.
        }
      };
      await expect(call(["up["])).rejects.toThrow(/\[invalid_argument\] 1:3: parse error/);
      await expect(call(["up"], "personal")).rejects.toThrow(/\[permission_denied\]/);
      const many = Array.from({ length: 10_000 }, (_, index) => `metric_${index}`);
      await expect(call(many)).rejects.toThrow(/\[invalid_argument\]/);
    },
  );
});

it("a real Prometheus federates with a token and sees the queue change", async () => {
  await using prometheus = await RealPrometheus.start({
    scrapes: [
      {
        job_name: "tessera",
        honor_labels: true,
        metrics_path: "/federate",
        params: { "match[]": ['{__name__=~"tessera_.*"}'] },
        authorization: { credentials: "monitoring" },
        static_configs: [{ targets: [`127.0.0.1:${port}`] }],
      },
    ],
  });
  const query = 'tessera_queue_length{deployment="digits",endpoint="run"}';
  await prometheus.until(query, (value) => value === "5");
  metrics.deployment(ACME).queueObserved("run", { queued: 8, running: 1, oldestSeconds: 3 });
  await prometheus.until(query, (value) => value === "8");
  await prometheus.until('count(count by (organization) ({organization!=""}))', (n) => n === "1");
});

/** A request with headers that fetch sets itself. */
function raw(path: string, headers: Record<string, string>) {
  return new Promise<{
    readonly status: number | undefined;
    readonly headers: import("node:http").IncomingHttpHeaders;
    readonly body: Buffer;
  }>((resolve, reject) => {
    const req = request(
      origin + path,
      { headers: { ...bearer("monitoring"), ...headers } },
      (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.once("end", () =>
          resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks) }),
        );
      },
    );
    req.once("error", reject);
    req.end();
  });
}
