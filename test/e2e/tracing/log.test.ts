import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CALLER, TRACED } from "../../tracing/traced.ts";
import type { Shown } from "../serve/served.ts";
import { type Line, TracedProcess } from "./process.ts";

/** What must be in no line. */
const TOKEN = "marked-token";
const WRONG_TOKEN = "marked-and-wrong";
const ARGUMENT = "marked-argument";
const SECRET = "marked-environment";

const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

let lines: Line[];
let text: string;
/** Task ids by what they were. */
const tasks: { [name: string]: string } = {};

beforeAll(async () => {
  await using served = await TracedProcess.start({
    TESSERA_TOKEN: TOKEN,
    TESSERA_LOG_LEVEL: "debug",
    TRACED_SECRET: SECRET,
  });
  const post = async (path: string, values: object, requestId: string, headers = {}) => {
    const all = { ...AUTHORIZED, ...headers, "x-request-id": requestId };
    const answer = await served.post(path, values, all);
    expect(answer.headers.get("x-request-id")).toBe(requestId);
    return answer;
  };
  const marked = { text: ARGUMENT };
  const called = await post("/quiet", marked, "an-api");
  expect(called.text).toBe(`${ARGUMENT} ${SECRET}`);
  await post("/says", {}, "an-api-that-logs", TRACED);
  await post("/fails", {}, "an-api-that-fails");
  for (const name of ["quiet_later", "fails_later"]) {
    const submitted = await post(`/${name}/submit`, marked, `submit-${name}`, TRACED);
    const id = (submitted.json as Shown).task_id;
    tasks[name] = id;
    await served.get(`/${name}/get?task_id=${id}&wait=30`, AUTHORIZED);
    await post(`/${name}/retry?task_id=${id}`, {}, `retry-${name}`);
  }
  const wrong = { authorization: `Bearer ${WRONG_TOKEN}` };
  expect((await post("/quiet", marked, "unauthenticated", wrong)).status).toBe(401);
  expect((await post("/quiet", { text: [ARGUMENT] }, "invalid")).status).toBe(400);
  const malformed = { ...AUTHORIZED, "content-type": "application/json" };
  expect((await served.send("/quiet", `{"text": ${ARGUMENT}`, malformed)).status).toBe(400);
  await post(`/${ARGUMENT}?token=${TOKEN}`, marked, "nowhere").catch(() => undefined);
  const message = encodeURIComponent(JSON.stringify({ endpoint: ARGUMENT }));
  const rpc = "/tessera.v1.EndpointService/ListEndpoints";
  await served.get(`${rpc}?connect=v1&encoding=json&message=${message}`, AUTHORIZED);
  await served.end();
  lines = served.log();
  // Paths are logged, so what stands in one is not a secret.
  text = served.lines.join("\n").replaceAll(`/${ARGUMENT}`, "/…");
});
afterAll(() => {
  lines = [];
});

/** The line of a call. */
function callLine(requestId: string): Line | undefined {
  return lines.find(({ reqId, call }) => reqId === requestId && call !== undefined);
}

describe("the log", () => {
  it.each([TOKEN, WRONG_TOKEN, ARGUMENT, SECRET])("has %s in no line", (secret) => {
    expect(lines.length).toBeGreaterThan(10);
    expect(text).not.toContain(secret);
  });

  it("has a line for each call, with the request's id", () => {
    for (const requestId of ["an-api", "unauthenticated", "invalid", "submit-quiet_later"]) {
      expect(callLine(requestId), requestId).toMatchObject({ call: { method: "POST" } });
    }
    expect(callLine("unauthenticated")).toMatchObject({ call: { status: 401 } });
  });

  it("says which task and trace a call was about", () => {
    const { quiet_later } = tasks;
    expect(callLine("submit-quiet_later")).toMatchObject({ taskId: quiet_later, traceId: CALLER });
    expect(callLine("an-api")).not.toHaveProperty("taskId");
    // Of a retry it is the new task.
    const retried = callLine("retry-quiet_later");
    expect(retried?.taskId).toMatch(/^[0-9a-f-]{36}$/);
    expect(retried?.taskId).not.toBe(quiet_later);
    const asked = lines.find(
      ({ call, taskId }) => taskId === quiet_later && JSON.stringify({ call }).includes("/get"),
    );
    expect(asked?.reqId).toMatch(/^[\da-f]{32}$/);
  });

  it("says of a function's lines to which call or task they belong", () => {
    const said = lines.filter(({ msg }) => msg === "said by the function");
    expect(said.find(({ endpoint }) => endpoint === "says")).toMatchObject({
      reqId: "an-api-that-logs",
      taskId: expect.any(String),
      traceId: CALLER,
    });
    expect(said.find(({ taskId }) => taskId === tasks.quiet_later)).toMatchObject({
      endpoint: "quiet_later",
      attempt: 1,
      traceId: CALLER,
    });
  });

  it("says of failures to which call or task they belong", () => {
    expect(lines.find(({ msg }) => msg === "a function failed")).toMatchObject({
      endpoint: "fails",
      reqId: "an-api-that-fails",
      taskId: expect.any(String),
    });
    const failed = lines.find(({ taskId, err }) => taskId === tasks.fails_later && err);
    expect(failed).toMatchObject({ attempt: 1, traceId: CALLER, err: { message: "out of luck" } });
  });
});
