/**
 * Mounted servers: FastAPI in a service answers as it does in uvicorn alone, also where it streams,
 * fails or speaks through WebSockets, and a hostile server harms its own callers only.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { environment, pythonMissing } from "../clients/python-environment.ts";
import { fixture } from "./hosted.ts";

const PACKAGES = [
  ...["pydantic>=2", "fastapi", "uvicorn", "httptools", "uvloop", "websockets"],
  "python-multipart",
];

/** Headers of one connection or moment, and the platform's own. */
const OWN = [
  ...["connection", "date", "keep-alive", "transfer-encoding"],
  ...["tessera-worker", "x-request-id"],
];

interface Asked {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer | string | readonly Buffer[];
}

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** False where the connection broke before the end. */
  readonly isWhole: boolean;
}

async function ask(url: string, path: string, { method = "GET", headers = {}, body }: Asked = {}) {
  const sent = request(`${url}${path}`, { method, headers, agent: false });
  for (const chunk of Array.isArray(body) ? body : body === undefined ? [] : [body]) {
    sent.write(chunk);
  }
  sent.end();
  const [res] = await once(sent, "response");
  const chunks: Buffer[] = [];
  res.on("data", (chunk: Buffer) => chunks.push(chunk));
  res.on("error", () => {});
  await new Promise((resolve) => res.once("close", resolve));
  const found = { ...res.headers };
  for (const name of OWN) {
    delete found[name];
  }
  const bytes = Buffer.concat(chunks).toString("latin1").replaceAll(new URL(url).host, "HOST");
  const location = found.location?.replace(new URL(url).host, "HOST");
  return {
    status: res.statusCode ?? 0,
    headers: { ...found, ...(location && { location }) },
    body: bytes,
    isWhole: res.complete,
  } satisfies Answered;
}

const JSON_BODY = { "content-type": "application/json" };
const MEBIBYTE = Buffer.alloc(1024 ** 2, "m");
const FORM = [
  ["--b", 'content-disposition: form-data; name="name"', "", "Ada"],
  ["--b", 'content-disposition: form-data; name="page"; filename="a.txt"', ""],
  ["x".repeat(70_000), "--b--", ""],
]
  .map((lines) => lines.join("\r\n"))
  .join("\r\n");

const CASES: readonly (readonly [path: string, asked?: Asked])[] = [
  ["/plain"],
  ["/plain?a=%20"],
  ["/missing"],
  ["/missing/deep/down"],
  ["/plain", { method: "POST" }],
  ["/plain", { method: "HEAD" }],
  ["/plain", { method: "OPTIONS" }],
  ["/state"],
  ["/query?a=1&a=2&b=%C3%A9+x&empty="],
  ["/path/a%2Fb/c"],
  ["/path/%C3%A9%20x/"],
  ["/path//double//slash"],
  ["/items"],
  ["/headers", { headers: { "x-own": ["1", "2"], "X-Own-Mixed": "Ünï" } }],
  ["/headers", { headers: { "x-own-long": "l".repeat(20_000) } }],
  ["/cookies", { headers: { cookie: "z=26; y=25" } }],
  ["/status/204"],
  ["/status/304"],
  ["/status/205"],
  ["/status/503"],
  ["/status/599"],
  ["/created"],
  ["/moved"],
  ["/text"],
  ["/bytes"],
  ["/zipped", { headers: { "accept-encoding": "gzip" } }],
  ["/large-header"],
  ["/json", { method: "POST", headers: JSON_BODY, body: '{"name":"ü"}' }],
  ["/json", { method: "POST", headers: JSON_BODY, body: '{"count":"many"}' }],
  ["/json", { method: "POST", headers: JSON_BODY, body: "{" }],
  [
    "/form",
    { method: "POST", headers: { "content-type": "multipart/form-data; boundary=b" }, body: FORM },
  ],
  ["/body", { method: "POST" }],
  ["/body", { method: "POST", body: [MEBIBYTE, MEBIBYTE, MEBIBYTE] }],
  ["/body", { method: "PUT", headers: { "content-length": MEBIBYTE.length }, body: MEBIBYTE }],
  ["/body", { method: "PATCH", body: "patch" }],
  ["/body", { method: "DELETE" }],
  ["/body", { method: "POST", headers: { expect: "100-continue" }, body: "late" }],
  ["/stream"],
  ["/events", { headers: { accept: "text/event-stream" } }],
  ["/fails"],
  ["/refuses"],
  ["/breaks-off"],
  ["/plain", { headers: { origin: "https://page.example" } }],
  [
    "/plain",
    {
      method: "OPTIONS",
      headers: { origin: "https://page.example", "access-control-request-method": "PUT" },
    },
  ],
  ["/docs"],
];

/** Whether a task has the same answer: its headers are those that are listed, each once. */
function isSameAsTask([path, { method, headers = {} } = {}]: (typeof CASES)[number]): boolean {
  const isListed = Object.keys(headers).every(
    (name) => !["origin", "accept-encoding", "x-own", "x-own-long"].includes(name),
  );
  return isListed && path !== "/breaks-off" && method !== "HEAD";
}

/** What a server answers that the answer of a task has, too. */
function told({ status, headers, body }: Answered) {
  const names = ["content-encoding", "location", "set-cookie", "x-own-pot"];
  // What is stored has a type.
  const none = [204, 205, 304].includes(status) ? undefined : "application/octet-stream";
  const type = headers["content-type"] ?? none;
  return { status, type, body, headers: names.map((name) => [name, headers[name]]) };
}

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`a mounted server${skipped}`, () => {
  let python: string;
  let alone: ChildProcess;
  let aloneUrl: string;
  let program: Program;
  let url: string;

  beforeAll(async () => {
    ({ python } = await environment({ name: "mounts", packages: PACKAGES }));
    alone = spawn(python, [fixture("mounts/alone.py")], {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 600_000,
    });
    const [port] = await once(alone.stdout as NodeJS.ReadableStream, "data");
    aloneUrl = `http://127.0.0.1:${String(port).trim()}`;
    const args = [fixture("mounts/service.py"), "--python", python, "--workers", "1"];
    ({ program, url } = await Program.serve(args, { limitMs: 600_000 }));
  }, 300_000);
  afterAll(async () => {
    alone?.kill("SIGKILL");
    await program?.[Symbol.asyncDispose]();
  });

  const socket = (base: string, path: string, protocols: string[] = []): WebSocket =>
    new WebSocket(`${base.replace("http", "ws")}${path}`, protocols);
  const closed = async (open: WebSocket): Promise<{ code: number; reason: string }> => {
    const [event] = await once(open, "close");
    return { code: event.code, reason: event.reason };
  };
  const seen = async (): Promise<string[]> => JSON.parse((await ask(url, "/seen")).body);

  it.each(
    CASES.map(([path, asked], number) => ({
      path,
      asked,
      what: `${asked?.method ?? "GET"} ${path} (${number})`,
    })),
  )("answers $what as in uvicorn alone", async ({ path, asked }) => {
    const [own, expected] = [await ask(url, path, asked), await ask(aloneUrl, path, asked)];
    expect(own).toEqual(expected);
  });

  it.each(
    CASES.filter(isSameAsTask).map(([path, asked = {}], number) => ({
      path,
      asked,
      what: `${asked.method ?? "GET"} ${path} (${number})`,
    })),
  )("answers $what as in uvicorn alone as a task, too", async ({ path, asked }) => {
    const headers = { ...asked.headers, "tessera-queue": "submit", prefer: "wait=30" };
    const own = await ask(url, path, { ...asked, headers });
    const expected = await ask(aloneUrl, path, asked);
    expect(own.headers["tessera-task-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(told(own)).toEqual(told(expected));
  });

  it("answers a task before it has read a body, and fails one whose answer breaks off", async () => {
    const body = Array.from({ length: 8 }, () => MEBIBYTE);
    const headers = { prefer: "wait=30" };
    const early = await ask(url, "/early/submit", { method: "POST", headers, body });
    expect(early.body).toBe("answered before the body was read");
    const asked = { headers: { "tessera-queue": "submit", ...headers } };
    const broken = await ask(url, "/breaks-off", asked);
    expect([broken.status, JSON.parse(broken.body).message]).toEqual([
      503,
      "the server at / ended the connection before the end of its answer",
    ]);
  });

  it("hears that its task is cancelled, or has had its time", async () => {
    const count = async (event: string) => (await seen()).filter((each) => each === event).length;
    const left = () => count("left");
    const [before, stayed] = [await left(), await count("stays")];
    const headers = { "tessera-queue": "submit" };
    const { task_id: taskId } = JSON.parse((await ask(url, "/endless", { headers })).body);
    const task = async (verb: string, method = "GET") =>
      JSON.parse((await ask(url, `/${verb}?task_id=${taskId}&abort=true`, { method })).body);
    await expect.poll(() => count("stays")).toBe(stayed + 1);
    expect((await task("cancel", "POST")).status).toBe("cancelled");
    await expect.poll(left).toBe(before + 1);
    const late = await ask(url, "/endless", { headers: { ...headers, prefer: "wait=30" } });
    expect(late.status).toBe(504);
    await expect.poll(left).toBe(before + 2);
  });

  it("answers over HTTP/2, with the cookies of several headers", async () => {
    const session = connectHttp2(url);
    const sent = session.request({ ":path": "/cookies", cookie: ["a=1", "b=2"] });
    let body = "";
    sent.setEncoding("utf8").on("data", (text) => {
      body += text;
    });
    const [headers] = await once(sent, "response");
    await once(sent, "end");
    session.close();
    expect([headers[":status"], headers["set-cookie"].length]).toEqual([200, 2]);
    expect(body).toBe("[('a', '1'), ('b', '2')]");
  });

  it("is told who calls, and not what the platform was told", async () => {
    const { body } = await ask(url, "/all-headers", {
      headers: {
        "x-forwarded-for": "6.6.6.6",
        "tessera-caller": "forged",
        "tessera-proxy-secret": "secret",
        cookie: "__Host-tessera_session=x; own=1",
        authorization: "Basic b3du",
        te: "trailers",
      },
    });
    const headers = JSON.parse(body);
    expect(headers).toMatchObject({
      "x-forwarded-for": "127.0.0.1",
      cookie: "own=1",
      authorization: "Basic b3du",
    });
    expect(Object.keys(headers)).not.toEqual(
      expect.arrayContaining(["tessera-caller", "tessera-proxy-secret", "te"]),
    );
  });

  it("comes after the endpoints, and below another one at a longer path", async () => {
    const called = await ask(url, "/double", {
      method: "POST",
      headers: JSON_BODY,
      body: '{"number":4}',
    });
    expect(called.body).toBe("8");
    const submitted = await ask(url, "/work/submit", {
      method: "POST",
      headers: JSON_BODY,
      body: '{"number":4}',
    });
    expect(submitted.status).toBe(202);
    const raw = await ask(url, "/raw/x?y=1");
    expect(raw).toMatchObject({ status: 200, body: "/raw /raw/x http ('127.0.0.1', 0)" });
    expect(raw.headers["x-own"]).toBe("raw");
    expect((await ask(url, "/rawer")).status).toBe(404);
    expect(program.stdout).toContain("2 endpoints, 2 mounted servers, 1 worker");
  });

  it("has its time until its answer begins", async () => {
    const late = await ask(url, "/slow");
    expect(late.status).toBe(504);
    expect(JSON.parse(late.body)).toMatchObject({
      message: "the server at / did not begin its answer within 2000 ms",
    });
  });

  it("hears that its caller has left", async () => {
    const before = (await seen()).filter((each) => each === "left").length;
    const sent = request(`${url}/endless`, { agent: false }).end();
    const [res] = await once(sent, "response");
    await once(res, "data");
    sent.destroy();
    await expect
      .poll(async () => (await seen()).filter((each) => each === "left").length)
      .toBe(before + 1);
  });

  it("answers what comes just after a failure, though its server has ended that connection", async () => {
    const statuses = [];
    for (let number = 0; number < 50; number++) {
      const failed = await ask(url, "/fails");
      const next = await ask(url, "/body", { method: "POST", body: "whole" });
      statuses.push(failed.status, next.status);
    }
    expect(new Set(statuses)).toEqual(new Set([500, 200]));
  });

  it("answers before it has read a body, and serves the next request", async () => {
    const early = await ask(url, "/early", { method: "POST", body: [MEBIBYTE, MEBIBYTE] });
    expect(early.body).toBe("answered before the body was read");
    expect((await ask(url, "/plain")).status).toBe(200);
  });

  it("refuses a request with a length and chunks, as the node does everywhere", async () => {
    const raw = connect(Number(new URL(url).port), "127.0.0.1");
    raw.write(
      "POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    );
    const [data] = await once(raw, "data");
    raw.destroy();
    expect(String(data)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("echoes through WebSockets, with subprotocols, large frames and its own codes", async () => {
    const open = socket(url, "/echo", ["other", "chat"]);
    open.binaryType = "arraybuffer";
    await once(open, "open");
    expect(open.protocol).toBe("chat");
    const frames = ["a", "ü".repeat(100_000)];
    for (const frame of frames) {
      open.send(frame);
      expect((await once(open, "message"))[0].data).toBe(frame);
    }
    open.send(MEBIBYTE);
    const [{ data }] = await once(open, "message");
    expect(Buffer.from(data).equals(MEBIBYTE)).toBe(true);
    open.send("close");
    expect(await closed(open)).toEqual({ code: 4001, reason: "as asked" });
  });

  it("closes a WebSocket whose frame is too large, and no other", async () => {
    const [open, beside] = [socket(url, "/echo"), socket(url, "/echo")];
    await Promise.all([once(open, "open"), once(beside, "open")]);
    open.send(Buffer.alloc(17 * 1024 ** 2));
    // The caller may be sending still when it is told, and then hears of a broken connection.
    expect([1006, 1009]).toContain((await closed(open)).code);
    beside.send("still there");
    expect((await once(beside, "message"))[0].data).toBe("still there");
    beside.close();
  });

  it("hears that the caller of a WebSocket has left without a word", async () => {
    const before = (await seen()).length;
    const raw = connect(Number(new URL(url).port), "127.0.0.1");
    raw.write(
      "GET /echo HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    const [data] = await once(raw, "data");
    expect(String(data)).toMatch(/^HTTP\/1\.1 101 /);
    raw.destroy();
    await expect.poll(async () => (await seen()).length).toBe(before + 1);
    expect((await seen()).at(-1)).toMatch(/^closed 100[56]$/);
  });

  it.each([
    ["denies it", "/denied", {}],
    ["has no such path", "/nowhere", {}],
    ["is asked without a key", "/echo", { "sec-websocket-key": undefined }],
    ["is asked for an old version", "/echo", { "sec-websocket-version": "1" }],
  ])("answers a WebSocket as uvicorn does where it %s", async (_what, path, changed) => {
    const statuses = [];
    for (const base of [url, aloneUrl]) {
      const headers = {
        ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        ...changed,
      };
      const given = Object.entries(headers).filter(([, value]) => value !== undefined);
      const sent = request(`${base}${path}`, { agent: false, headers: Object.fromEntries(given) });
      const [res] = await once(sent.end(), "response");
      res.resume();
      statuses.push(res.statusCode);
    }
    expect(statuses[0]).toBe(statuses[1]);
    expect(statuses[0]).toBeGreaterThanOrEqual(400);
  });

  it("answers a request for a WebSocket where there is none in HTTP, and ends the connection", async () => {
    const sent = request(`${url}/double`, {
      agent: false,
      headers: { connection: "Upgrade", upgrade: "websocket" },
    });
    const [res] = await once(sent.end(), "response");
    res.resume();
    expect([res.statusCode, res.headers.connection]).toEqual([405, "close"]);
  });

  it("is counted by its routes, in metrics, and by its path where none is told", async () => {
    for (const name of ["a", "b"]) {
      await ask(url, `/path/${name}`);
      expect((await ask(url, `/missing/${name}`)).status).toBe(404);
    }
    const { body } = await ask(url, "/metrics");
    const lines = body.split("\n").filter((line) => line.startsWith("tessera_requests_total{"));
    const isCounted = (...labels: string[]) =>
      lines.some((line) => labels.every((label) => line.includes(label)));
    expect(isCounted('endpoint="/"', 'code="not_found"')).toBe(true);
    expect(isCounted('endpoint="/raw"', 'code="ok"')).toBe(true);
    expect(isCounted('endpoint="/path/{rest}"', 'code="ok"')).toBe(true);
    expect(isCounted('endpoint="/echo"', 'code="ok"')).toBe(true);
    expect(body).not.toMatch(/endpoint="\/(?:path|missing)\/[ab]/);
  });

  it("describes its operations in the document of the service, after its endpoints", async () => {
    const { body } = await ask(url, "/docs.json");
    const { paths, tags } = JSON.parse(body);
    expect(paths["/path/{rest}"].get).toMatchObject({
      tags: ["the server at /"],
      operationId: expect.stringMatching(/^server\./),
    });
    expect(paths["/double"].post).toMatchObject({ operationId: "double" });
    const descriptions = tags.flatMap((tag: Record<string, string>) =>
      tag["x-tessera-mount"] === "/raw" ? [tag.description] : [],
    );
    expect(descriptions).toEqual([
      "A mounted server. Its operations are not here: its document is no JSON of at most 50000 values.",
    ]);
  });

  it("closes WebSockets with 1012 when it stops, and ends its lifespan", async () => {
    const args = [fixture("mounts/service.py"), "--python", python, "--workers", "1"];
    const { program: stopping, url: base } = await Program.serve(args);
    await using _ended = stopping;
    const open = socket(base, "/echo");
    await once(open, "open");
    const [{ code }, ended] = await Promise.all([closed(open), stopping.stop()]);
    expect([code, ended.code]).toEqual([1012, 0]);
    expect(ended.stdout + ended.stderr).toContain("the lifespan has ended");
  });

  it("that is hostile harms its own callers only", async () => {
    const args = [fixture("mounts/hostile.py"), "--python", python, "--workers", "1"];
    const { program: hostile, url: base } = await Program.serve(args);
    await using _ended = hostile;
    const call = (name: string, body: object) =>
      ask(base, `/${name}`, { method: "POST", headers: JSON_BODY, body: JSON.stringify(body) });
    const set = await ask(base, "/cookie");
    expect(set.headers["set-cookie"]).toEqual(["own=1; Path=/"]);
    expect(set.headers).not.toHaveProperty("strict-transport-security");
    expect(set.headers).not.toHaveProperty("clear-site-data");
    expect((await ask(base, "/silent")).status).toBe(500);
    expect((await call("uninvited", { count: 50 })).body).toBe("50");
    expect((await ask(base, "/fine")).body).toBe("fine");
    const ends = await Promise.all([ask(base, "/exits"), ask(base, "/exits")]);
    for (const { status, body } of ends) {
      expect([status, JSON.parse(body).details[0].debug.reason]).toEqual([503, "WORKER_LOST"]);
    }
    await expect.poll(async () => (await ask(base, "/fine")).body).toBe("fine");
    await call("replace", {});
    // Kept connections are still served, and no new one comes.
    const left = await Promise.all(Array.from({ length: 20 }, () => ask(base, "/fine")));
    const missed = left.filter(({ status }) => status !== 200);
    expect(missed.length).toBeGreaterThan(0);
    for (const { status, body } of missed) {
      expect([status, JSON.parse(body).details[0].debug.reason]).toEqual([503, "WORKER_LOST"]);
    }
  }, 120_000);
});
