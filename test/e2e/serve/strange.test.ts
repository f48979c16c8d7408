import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const JSON_HEADERS = { "content-type": "application/json" };

describe("a path", () => {
  it.each(["/%zz", "/repeat%ff", "/sum/status%c3?task_id=1", "/api/v1/%zz"])(
    "with broken percent-encoding is refused in the shape of all errors: %s",
    async (path) => {
      expect(refusal(await served.raw("GET", path))).toMatchObject({
        status: 400,
        reason: "REQUEST_INVALID",
      });
    },
  );

  it("far too long does not exist", async () => {
    const found = refusal(await served.raw("POST", `/${"x".repeat(5_000)}`));
    expect(found).toMatchObject({ status: 404, reason: "ROUTE_NOT_FOUND" });
  });

  it("is the same with an absolute URL", async () => {
    expect(await served.raw("GET", `${served.origin}/livez`)).toMatchObject({ status: 200 });
  });
});

describe("a query", () => {
  it.each([
    ["/sum/status", "task_id"],
    ["/sum/status?task_id=", "task_id"],
    ["/sum/status?task_id=a&task_id=b", "task_id"],
    ["/sum/status?task_id=a&wait=1&wait=2", "wait"],
    ["/sum/status?task_id=a&wait=", "wait"],
    ["/sum/status?task_id=a&wait=61", "wait"],
    ["/sum/status?task_id=a&wait=-1", "wait"],
    ["/sum/get?task_id=a&wait=0x10", "wait"],
    ["/sum/get?task_id=a&wait=NaN", "wait"],
  ])("that makes no sense is refused, naming the parameter: %s", async (path, field) => {
    expect(refusal(await served.get(path))).toMatchObject({
      status: 400,
      reason: "REQUEST_INVALID",
      fields: [field],
    });
  });

  it("with broken percent-encoding is taken as it stands", async () => {
    expect(refusal(await served.raw("GET", "/sum/status?task_id=%zz%ff"))).toMatchObject({
      status: 404,
      reason: "TASK_NOT_FOUND",
    });
  });

  it("and a body that contradict each other are refused", async () => {
    const body = JSON.stringify({ task_id: "one" });
    const answer = await served.fetch("/sum/cancel?task_id=two", { method: "PUT", body });
    expect(refusal(answer)).toMatchObject({ status: 400, fields: ["task_id"] });
    for (const wrong of ["[]", "7", "{", '{"task_id":7}', '{"abort":"perhaps","task_id":"x"}']) {
      expect(refusal(await served.send("/sum/cancel", wrong)).status, wrong).toBe(400);
    }
  });
});

describe("a header", () => {
  it("that is too long for a key is refused, naming it", async () => {
    const headers = { "idempotency-key": "x".repeat(256) };
    expect(refusal(await served.post("/sum/submit", { numbers: [] }, headers))).toMatchObject({
      status: 400,
      reason: "REQUEST_INVALID",
      fields: ["idempotency_key"],
    });
  });

  it("may spell the type of JSON in any case", async () => {
    const headers = { "content-type": 'Application/JSON; charset="UTF-8"' };
    expect((await served.send("/repeat", '{"text":"a"}', headers)).text).toBe("a");
  });
});

describe("JSON", () => {
  it("that is not UTF-8 is refused rather than changed", async () => {
    const body = Buffer.from([...Buffer.from('{"text":"'), 0xff, 0xfe, ...Buffer.from('"}')]);
    expect(refusal(await served.send("/repeat", body, JSON_HEADERS))).toMatchObject({
      status: 400,
      reason: "BODY_MALFORMED",
    });
  });

  it.each([
    ["lists", "[", "", "]"],
    ["objects", '{"a":', "1", "}"],
  ])(
    "of 100,000 %s in each other is refused, and the next call is answered",
    async (_, ...parts) => {
      const [open, inner, close] = parts as [string, string, string];
      const deep = open.repeat(100_000) + inner + close.repeat(100_000);
      for (const [path, field] of [
        ["/repeat", "text"],
        ["/sum/submit", "numbers"],
        ["/describe", "image"],
        ["/size", "value"],
      ] as const) {
        const answer = await served.send(path, `{"${field}":${deep}}`, JSON_HEADERS);
        expect(refusal(answer)).toMatchObject({ status: 400, reason: "BODY_MALFORMED" });
      }
      const struct = `{"endpoint":"sum","arguments":{"numbers":${deep}}}`;
      for (const path of ["/api/v1/tasks", "/tessera.v1.TaskService/SubmitTask"]) {
        expect((await served.send(path, struct, JSON_HEADERS)).status).toBe(400);
      }
      expect((await served.post("/repeat", { text: "alive" })).text).toBe("alive");
    },
  );

  it("with names of what every object has changes nothing but its arguments", async () => {
    const names = ["constructor", "toString", "hasOwnProperty"];
    const text = '{"__proto__":{"polluted":1},"constructor":1,"toString":2,"hasOwnProperty":3}';
    expect((await served.send("/keys", text, JSON_HEADERS)).json).toEqual(names);
    const form = new FormData();
    for (const name of ["__proto__", ...names]) {
      form.set(name, "1");
    }
    expect((await served.send("/keys", form)).json).toEqual(names);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const refused = await served.send("/repeat", text, JSON_HEADERS);
    expect(refusal(refused)).toMatchObject({ status: 400, reason: "ARGUMENTS_INVALID" });
  });
});

describe("multipart", () => {
  const part = (head: string) => `--XX\r\ncontent-disposition: form-data; ${head}`;
  it.each([
    ["without a boundary", "multipart/form-data", "abc"],
    ["of something else", undefined, "garbage"],
    ["that ends in a value", undefined, part('name="title"\r\n\r\nabc')],
    ["that ends in a file", undefined, part('name="image"; filename="a.png"\r\n\r\nabc')],
    ["that ends in the head of a part", undefined, part('name="image"; filen')],
    ["with a part that has no name", undefined, `${part("\r\n\r\nabc\r\n--XX--\r\n")}`],
    ["of too many parts", undefined, `${part('name="a"\r\n\r\n1\r\n').repeat(2_001)}--XX--\r\n`],
  ])("%s is refused", async (_, type = "multipart/form-data; boundary=XX", body) => {
    for (const path of ["/describe", "/describe_later/submit"]) {
      const answer = await served.send(path, body, { "content-type": type });
      expect(refusal(answer)).toMatchObject({ status: 400, reason: "BODY_MALFORMED" });
    }
  });
});

describe("without a body, and without a word of its length", () => {
  it.each([
    ["a call", "POST /keys", 200],
    ["a submit", "POST /describe_later/submit", 400],
    ["a cancel", "PUT /describe_later/cancel?task_id=none", 404],
    ["an RPC of JSON", "POST /tessera.v1.TaskService/ListTasks", 400, "application/json"],
    ["an RPC of bytes", "POST /tessera.v1.TaskService/ListTasks", 200, "application/proto"],
    ["a form", "POST /keys", 200, "multipart/form-data; boundary=XX"],
    ["something that is not there", "DELETE /nothing/there/is", 404],
  ])(
    "%s is answered, and what follows on its connection",
    async (_, line, status, type?: string) => {
      const head = `${line} HTTP/1.1\r\nhost: x\r\n${type ? `content-type: ${type}\r\n` : ""}`;
      const answers = await served.bytes(
        `${head}\r\nGET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
      );
      expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`, "HTTP/1.1 200"]);
    },
  );
});

describe("what is not HTTP", () => {
  it.each([
    ["garbage", "\x00\x01 hello\r\n\r\n"],
    ["an unknown method", "FROB / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["a head too large", `GET / HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(300_000)}\r\n\r\n`],
    ["two lengths", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n"],
  ])("is cut off, and the server lives on: %s", async (_, bytes) => {
    expect(await served.bytes(bytes)).toMatch(
      /^HTTP\/1\.1 4(00|31) .*\r\n[\s\S]*Connection: close/,
    );
    expect((await served.get("/livez")).status).toBe(200);
  });
});
