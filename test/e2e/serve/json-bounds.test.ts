/** What JSON may be made of, whichever way it comes. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const JSON_HEADERS = { "content-type": "application/json" };
const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const MANY = `[${"{},".repeat(1_000_000)}{}]`;
const BODY_MALFORMED = { status: 400, code: "invalid_argument", reason: "BODY_MALFORMED" };

describe.each([
  ["nested too deep", DEEP, /is nested deeper than 200 levels/],
  ["of too many values", MANY, /holds more than (?:100000|30000) JSON values/],
])("JSON %s is refused before it is parsed", (_, value, message) => {
  it.each([
    ["in a call", "/sum/submit", `{"numbers":${value}}`],
    ["in REST", "/api/v1/tasks", `{"endpoint":"sum","arguments":{"numbers":${value}}}`],
    ["in a raw body of REST", "/api/v1/endpoints/sum:call", `{"numbers":${value}}`],
    ["where a message has no such field", "/api/v1/tasks", `{"nothing":${value}}`],
  ])("%s", async (_name, path, body) => {
    const found = refusal(await served.send(path, body, JSON_HEADERS));
    expect(found).toMatchObject(BODY_MALFORMED);
    expect(found.message).toMatch(message);
  });

  it("in Connect", async () => {
    const body = `{"endpoint":"sum","arguments":{"numbers":${value}}}`;
    const path = "/tessera.v1.TaskService/SubmitTask";
    const answer = await served.send(path, body, JSON_HEADERS);
    expect(answer.text).toContain("BODY_MALFORMED");
    expect(answer.text).toMatch(message);
    expect(answer.status).toBe(400);
  });

  it("in Connect, compressed", async () => {
    const body = gzipSync(`{"endpoint":"sum","arguments":{"numbers":${value}}}`);
    const answer = await served.send("/tessera.v1.TaskService/SubmitTask", body, {
      ...JSON_HEADERS,
      "content-encoding": "gzip",
    });
    expect(answer.text).toMatch(message);
    expect(answer.status).toBe(400);
  });

  it("in a form", async () => {
    const form = new FormData();
    form.set("image", new Blob(["x"], { type: "image/png" }), "x.png");
    form.set("sizes", value);
    const found = refusal(await served.fetch("/describe", { method: "POST", body: form }));
    expect(found).toMatchObject(BODY_MALFORMED);
    expect(found.message).toMatch(message);
  });
});

it("a form has one bound for all of its parts", async () => {
  const form = new FormData();
  form.set("image", new Blob(["x"], { type: "image/png" }), "x.png");
  for (let part = 0; part < 3; part++) {
    form.append("sizes", `[${"{},".repeat(40_000)}{}]`);
  }
  const found = refusal(await served.fetch("/describe", { method: "POST", body: form }));
  expect(found).toMatchObject(BODY_MALFORMED);
});

it("numbers of an array are bounded by the size of the body alone, and texts of forms are no JSON", async () => {
  const numbers = Array.from({ length: 300_000 }, () => 1);
  expect((await served.post("/sum/submit", { numbers }, { prefer: "wait=30" })).json).toBe(300_000);
  const form = new FormData();
  form.set("image", new Blob(["x"], { type: "image/png" }), "x.png");
  form.set("title", `[${"a,".repeat(150_000)}`);
  const answer = await served.fetch("/describe", { method: "POST", body: form });
  expect(answer.status, answer.text.slice(0, 200)).toBe(200);
});

it("compressed Connect JSON is read, and refused where it is not gzip or too large", async () => {
  const send = (body: Buffer) =>
    served.send("/tessera.v1.EndpointService/CallEndpoint", body, {
      ...JSON_HEADERS,
      "content-encoding": "gzip",
    });
  const message = { endpoint: "repeat", arguments: { text: "ab", times: 2 } };
  expect((await send(gzipSync(JSON.stringify(message)))).json).toMatchObject({ value: "abab" });
  expect((await send(Buffer.from("no gzip"))).json).toMatchObject({ code: "invalid_argument" });
  const large = JSON.stringify({ ...message, arguments: { text: "x".repeat(5_000_000) } });
  expect((await send(gzipSync(large))).json).toMatchObject({ code: "resource_exhausted" });
});
