import { request } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTesseraClient } from "../../../src/client/index.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const TOKEN = "a-token-for-tests";

let served: Served;
beforeAll(async () => {
  served = await serve("calls", { token: TOKEN });
});
afterAll(() => served.stop());

const BEARER = { authorization: `Bearer ${TOKEN}` };

it.each([
  ["POST", "/repeat"],
  ["POST", "/sum/submit"],
  ["GET", "/sum/status?task_id=x"],
  ["GET", "/sum/get?task_id=x"],
  ["PUT", "/sum/cancel?task_id=x"],
  ["PUT", "/sum/retry?task_id=x"],
  ["POST", "/sum/access?task_id=x"],
  ["GET", "/sum/events?task_id=x"],
  ["POST", "/nope"],
  ["GET", "/schema.json"],
  ["GET", "/docs.json"],
  ["GET", "/metrics"],
  ["GET", "/api/v1/endpoints"],
  ["GET", "/api/v1/tasks/x"],
  ["GET", "/api/v1/tasks/x:watch"],
])("%s %s asks for the token, and says whether one came", async (method, path) => {
  const given = [
    [undefined, "TOKEN_MISSING"],
    ["Bearer", "TOKEN_MISSING"],
    [`Basic ${TOKEN}`, "TOKEN_MISSING"],
    ["Bearer wrong", "TOKEN_INVALID"],
    [`Bearer ${TOKEN}x`, "TOKEN_INVALID"],
  ] as const;
  for (const [authorization, reason] of given) {
    const headers: Record<string, string> = authorization ? { authorization } : {};
    const answer = await served.fetch(path, { method, headers });
    expect(refusal(answer)).toMatchObject({ status: 401, code: "unauthenticated", reason });
    expect(answer.headers.get("www-authenticate")).toBe(
      reason === "TOKEN_MISSING"
        ? 'Bearer realm="tessera"'
        : 'Bearer realm="tessera", error="invalid_token"',
    );
  }
  expect((await served.fetch(path, { method, headers: BEARER })).status).not.toBe(401);
});

it("health and the page need no token", async () => {
  for (const path of ["/livez", "/readyz", "/"]) {
    expect((await served.get(path)).status, path).toBe(200);
  }
});

it("a caller with the token is served", async () => {
  expect((await served.post("/repeat", { text: "a" }, BEARER)).text).toBe("a");
  expect(
    (await served.post("/repeat", { text: "a" }, { authorization: `bearer ${TOKEN}` })).text,
  ).toBe("a");
});

it("what was counted is shown to who has the token", async () => {
  await served.post("/repeat", { text: "a" }, BEARER);
  await served.post("/api/v1/tasks", {}, BEARER);
  const { status, text } = await served.fetch("/metrics", { headers: BEARER });
  expect(status).toBe(200);
  expect(text).toMatch(
    /^tessera_requests_total\{code="ok",deployment="\w+",endpoint="repeat",.*protocol="http"\} \d/m,
  );
  expect(text).toMatch(/^tessera_requests_total\{code="\w+",deployment=.*,protocol="rest"\} 1$/m);
  expect(text).not.toContain("process_");
});

it.each(["/repeat", "/sum/submit", "/api/v1/tasks"])(
  "the refusal of %s comes before the body is read",
  async (path) => {
    const answered = Promise.withResolvers<number>();
    const req = request({
      host: "127.0.0.1",
      port: served.port,
      method: "POST",
      path,
      headers: { "content-type": "application/json", "content-length": "1000" },
    });
    req.on("response", (res) => answered.resolve(res.statusCode ?? 0));
    req.on("error", answered.reject);
    req.write("{");
    expect(await answered.promise).toBe(401);
    req.destroy();
  },
);

it("RPCs ask for the token, and the client brings it", async () => {
  const without = createTesseraClient({ url: served.origin });
  const err = ConnectError.from(await without.endpoints.listEndpoints({}).catch((e) => e));
  expect(err.code).toBe(Code.Unauthenticated);
  expect(err.metadata.get("www-authenticate")).toBe('Bearer realm="tessera"');
  const { endpoints } = createTesseraClient({ url: served.origin, token: TOKEN });
  expect((await endpoints.listEndpoints({})).endpoints[0]?.name).toBe("repeat");
});
