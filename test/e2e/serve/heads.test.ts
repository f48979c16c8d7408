import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { refusal } from "./refusal.ts";
import { type Answer, type Served, serve } from "./served.ts";

const TOKEN = "head-test-token";

let served: Served;
let protectedOne: Served;
beforeAll(async () => {
  [served, protectedOne] = await Promise.all([serve("heads"), serve("heads", { token: TOKEN })]);
});
afterAll(async () => {
  await Promise.all([served.stop(), protectedOne.stop()]);
});

const headersOf = ({ json }: Answer) => json as { readonly [name: string]: string };

describe("the head of a request", () => {
  test("is shown to a function that asks for it, as it was sent", async () => {
    const answer = await served.post(
      "/who?q=a%20b&h=3",
      {},
      { "x-tenant": "acme", cookie: "theme=dark", authorization: "Basic eDp5" },
    );
    expect(answer.json).toMatchObject({
      ...{ method: "POST", path: "/who", query: { q: "a b", h: "3" } },
      headers: { "x-tenant": "acme", cookie: "theme=dark", authorization: "Basic eDp5" },
    });
  });

  test("is shown without the credentials that the platform took, and without its cookies", async () => {
    const answer = await protectedOne.post(
      "/who",
      {},
      {
        authorization: `Bearer ${TOKEN}`,
        cookie: "theme=dark; tessera_session=s; __Host-tessera_session=s",
        connection: "keep-alive",
      },
    );
    const { headers } = answer.json as { headers: Record<string, string> };
    expect(headers).toMatchObject({ cookie: "theme=dark" });
    expect(Object.keys(headers)).not.toContain("authorization");
    expect(Object.keys(headers)).not.toContain("connection");
    expect(JSON.stringify(answer.json)).not.toContain(TOKEN);
  });

  test("says who calls as the platform knows it, and as nobody else says", async () => {
    const forged = { "tessera-caller": 'token="forged", organization="acme"' };
    for (const path of ["/who", "/all"]) {
      const answer = await served.post(path, {}, forged);
      expect(answer.status).toBe(200);
      expect(JSON.stringify(answer.json)).not.toContain("forged");
    }
  });

  test("is stored with a task: what it names, and of all the rest no secret", async () => {
    const sent = { "x-tenant": "acme", "x-other": "no", authorization: "Basic eDp5" };
    expect(headersOf(await served.post("/tenant", {}, sent))).toEqual({
      "x-tenant": "acme",
      authorization: "Basic eDp5",
    });
    const all = headersOf(await served.post("/all", {}, { ...sent, cookie: "a=b" }));
    expect(all).toMatchObject({ "x-tenant": "acme", "x-other": "no" });
    expect(Object.keys(all)).not.toContain("authorization");
    expect(Object.keys(all)).not.toContain("cookie");
  });

  test("is hidden from a function that does not ask for it", async () => {
    expect(refusal(await served.post("/hidden", {}))).toMatchObject({
      ...{ status: 500, reason: "CALL_FAILED" },
      message: expect.stringContaining("declare the headers that it reads"),
    });
  });

  test("is refused with more than a head has, by endpoints that are shown it alone", async () => {
    const large = { "x-large": "x".repeat(9_000), "x-other": "x".repeat(9_000) };
    expect(refusal(await served.post("/who", {}, large))).toMatchObject({
      ...{ status: 400, reason: "REQUEST_INVALID" },
      message: expect.stringContaining("16384 bytes"),
    });
    expect((await served.post("/text", {}, large)).status).toBe(200);
  });
});

describe("the head of an answer", () => {
  test.each([201, 202, 404, 418, 422, 503])(
    "has the status %d that its function says",
    async (status) => {
      const answer = await served.post("/say", { status });
      expect([answer.status, answer.json]).toEqual([status, { said: true }]);
    },
  );

  test.each([204, 205, 304])("of the status %d goes without content", async (status) => {
    const answer = await served.post("/say", { status });
    expect([answer.status, answer.text]).toEqual([status, ""]);
    expect(answer.headers.get("content-type")).toBeNull();
  });

  test("has the headers and cookies that its function says", async () => {
    const { headers } = await served.post("/say", {
      headers: [
        ["x-model", "v2"],
        ["cache-control", "max-age=60"],
        ["set-cookie", "seen=yes; Path=/; HttpOnly"],
        ["set-cookie", "other=1"],
      ],
    });
    expect(headers.get("x-model")).toBe("v2");
    expect(headers.get("cache-control")).toBe("max-age=60");
    expect(headers.getSetCookie()).toEqual(["seen=yes; Path=/; HttpOnly", "other=1"]);
  });

  test("has none of the headers that belong to the connection or to the platform", async () => {
    const { status, headers, json } = await served.post("/say", {
      headers: [
        ["content-length", "1"],
        ["transfer-encoding", "chunked"],
        ["access-control-allow-origin", "*"],
        ["strict-transport-security", "max-age=1"],
        ["clear-site-data", "*"],
        ["set-cookie", "tessera_session=forged"],
        ["set-cookie", "__Host-tessera_session=forged; Path=/; Secure"],
        ["set-cookie", "wide=1; Domain=example.com"],
      ],
    });
    expect([status, json]).toEqual([200, { said: true }]);
    for (const name of [
      "access-control-allow-origin",
      "strict-transport-security",
      "clear-site-data",
    ]) {
      expect(headers.get(name)).toBeNull();
    }
    expect(headers.getSetCookie()).toEqual(["wide=1"]);
  });

  test.each([
    ["a status that there is not", { status: 99 }, /status is 99/],
    ["letters that HTTP cannot carry", { headers: [["x-model", "\u0100"]] }, /./],
    ["more than a head has", { headers: [["x-model", "x".repeat(17_000)]] }, /limit is 16384/],
  ])("is refused with %s", async (_, values, message) => {
    const refused = refusal(await served.post("/say", values));
    expect(refused.status).toBe(500);
    expect(refused.message).toMatch(message);
  });

  test("of a stream is what was said before the first piece", async () => {
    const answer = await served.post("/words", { status: 206 });
    expect([answer.status, answer.headers.get("x-model"), answer.text]).toEqual([206, "v2", "ab"]);
  });

  test("is that of a Response that the function returns, with its content", async () => {
    const answer = await served.post("/page", {});
    expect([answer.status, answer.text]).toEqual([203, "<h1>hi</h1>"]);
    expect(answer.headers.get("content-type")).toBe("text/html");
    expect(answer.headers.get("content-security-policy")).toMatch(/^sandbox/);
  });

  test("is stored with the result of a task", async () => {
    const { json } = await served.post("/tenant/submit", {}, { "x-tenant": "acme" });
    const { task_id } = json as { task_id: string };
    const got = await served.get(`/tenant/get?task_id=${task_id}&wait=30`);
    expect([got.status, got.headers.get("x-model")]).toEqual([200, "v2"]);
    const again = await served.get(`/tenant/get?task_id=${task_id}`);
    expect(again.headers.get("x-model")).toBe("v2");
  });

  test("fails a task with a status of 400 and above", async () => {
    expect(refusal(await served.post("/refuse", {}))).toMatchObject({
      ...{ status: 404, message: "no such model" },
    });
  });
});

test("a date is a JSON text with its quotes, and a text is the text", async () => {
  const [date, text] = await Promise.all([served.post("/born", {}), served.post("/text", {})]);
  expect([date.text, date.headers.get("content-type")]).toEqual([
    '"1815-12-10"',
    "application/json; charset=utf-8",
  ]);
  expect([text.text, text.headers.get("content-type")]).toEqual([
    "1815-12-10",
    "text/plain; charset=utf-8",
  ]);
});
