import { fastify } from "fastify";
import { describe, expect, it } from "vitest";
import { sendFrameworkError } from "../../src/server/http/framework.ts";
import { refuseCrossSite, type Sharing, shareAcrossOrigins } from "../../src/server/origins.ts";

const APP = "https://app.example";
const OPERATORS = "https://operators.example";

/** A server of deployments at hosts that begin with `shared`, whose author lets the app call. */
function server(sharing: Sharing, allowed: readonly string[] = []) {
  const app = fastify();
  shareAcrossOrigins(app, {
    allowed,
    isForDeployment: ({ url }) => !url.startsWith("/api/"),
    sharedByAuthor: (host, origin) =>
      host.startsWith("shared") && origin === APP ? Promise.resolve(sharing) : undefined,
  });
  refuseCrossSite(app);
  app.setErrorHandler(sendFrameworkError);
  app.post("/*", async () => "called");
  app.options("/*", async (_req, reply) => reply.code(405).send());
  return async (
    method: "OPTIONS" | "POST",
    headers: Record<string, string> = {},
    url = "/f",
  ): Promise<Record<string, unknown>> => {
    const sent = {
      host: "shared.example",
      origin: APP,
      "sec-fetch-site": "cross-site",
      ...headers,
    };
    const { statusCode, headers: answered } = await app.inject({ method, url, headers: sent });
    const told = Object.entries(answered).filter(([name]) =>
      /^(?:access-control-|vary)/.test(name),
    );
    return { status: statusCode, ...Object.fromEntries(told) };
  };
}

const preflight = (headers: Record<string, string> = {}) => ({
  "access-control-request-method": "POST",
  ...headers,
});

describe("a deployment whose author lets pages of an app call", () => {
  it("answers what the author says, and what the node has where they say nothing", async () => {
    const send = server({});
    expect(await send("OPTIONS", preflight())).toEqual({
      status: 204,
      vary: "Origin, Access-Control-Request-Headers",
      "access-control-allow-origin": APP,
      "access-control-allow-methods": "GET, HEAD, POST, PUT",
      "access-control-allow-headers": expect.stringMatching(
        /Authorization.*Baggage, Sentry-Trace$/,
      ),
      "access-control-max-age": "7200",
    });
    expect(await send("POST")).toEqual({
      status: 200,
      vary: "Origin",
      "access-control-allow-origin": APP,
      "access-control-expose-headers": expect.stringContaining("Tessera-Task-Id"),
    });
    const all = server({
      credentials: true,
      methods: ["POST"],
      headers: ["X-Tenant"],
      exposedHeaders: ["X-Model", "*"],
      maxAgeSeconds: 60,
    });
    expect(await all("OPTIONS", preflight())).toMatchObject({
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": expect.stringMatching(/Sentry-Trace, X-Tenant$/),
      "access-control-max-age": "60",
    });
    expect(await all("POST")).toMatchObject({
      "access-control-allow-credentials": "true",
      "access-control-expose-headers": expect.stringMatching(
        /Tessera-Worker, RateLimit, RateLimit-Policy, X-Model$/,
      ),
    });
  });

  it("lets pages send the headers that they ask for, where any are let, and 100 at most", async () => {
    const asked = ["x-a", "b@d", "x b", ...Array.from({ length: 200 }, (_, n) => `x-${n}`)];
    const headers = preflight({ "access-control-request-headers": asked.join(", ") });
    const { "access-control-allow-headers": allowed } = await server({ headers: ["*"] })(
      "OPTIONS",
      headers,
    );
    const [, own] = String(allowed).split("Sentry-Trace, ");
    expect(own?.split(", ")).toEqual(["x-a", ...Array.from({ length: 99 }, (_, n) => `x-${n}`)]);
  });

  it("refuses the question for a method that the author does not name", async () => {
    const send = server({ methods: ["GET"] });
    expect(await send("OPTIONS", preflight())).toEqual({ status: 403 });
  });

  it.each([
    ["another app", { origin: "https://evil.example" }],
    ["a page without an origin", { origin: "null" }],
    ["another host", { host: "other.example" }],
  ])("gives nothing to %s", async (_, headers) => {
    const send = server({ credentials: true });
    expect(await send("OPTIONS", { ...preflight(), ...headers })).toEqual({ status: 405 });
    expect((await send("POST", headers)).status).not.toBe(200);
    expect(await send("POST", headers)).not.toHaveProperty("access-control-allow-origin");
  });

  it("opens no path of the platform", async () => {
    const send = server({ credentials: true });
    for (const answer of [
      await send("OPTIONS", preflight(), "/api/v1/tokens"),
      await send("POST", {}, "/api/v1/tokens"),
    ]) {
      expect(answer.status).not.toBe(200);
      expect(Object.keys(answer)).toEqual(["status"]);
    }
  });

  it("is open to the operator's origins too, without credentials", async () => {
    const send = server({ credentials: true }, [OPERATORS]);
    for (const origin of [APP, OPERATORS]) {
      const answer = await send("POST", { origin });
      expect(answer).toMatchObject({ status: 200, "access-control-allow-origin": origin });
      expect("access-control-allow-credentials" in answer).toBe(origin === APP);
    }
  });
});
