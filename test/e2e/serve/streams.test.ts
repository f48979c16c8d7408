import { type ClientHttp2Session, connect, constants } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streaming"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const JSON_BODY = { "content-type": "application/json" };
const SSE = { accept: "text/event-stream" };

/** A call whose answer is read by hand. */
async function open(path: string, values: object, init: RequestInit & { accept?: string } = {}) {
  const { accept = "*/*", ...rest } = init;
  const res = await fetch(served.origin + path, {
    method: "POST",
    headers: { ...JSON_BODY, accept },
    body: JSON.stringify(values),
    ...rest,
  });
  const reader = (res.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
  return { res, reader, read };
}

const filledBy = async (name: string) =>
  (await served.post("/filled", { name })).json as { asked: number; left: boolean };

describe("a streamed result", () => {
  const list = ["a", "", "b\r\nc", "é\u2028🙂"];
  const values = [1, null, { a: "b\nc" }, [[]], "x".repeat(300)];

  test("of texts is chunked text unless something else is asked for", async () => {
    const answer = await served.post("/texts", { list });
    expect(answer).toMatchObject({ status: 200, text: list.join("") });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "x-content-type-options": "nosniff",
      "transfer-encoding": "chunked",
    });
  });

  test("of values is a line of JSON for each", async () => {
    for (const [accept, type] of [
      ["*/*", "application/x-ndjson; charset=utf-8"],
      ["application/jsonl", "application/jsonl; charset=utf-8"],
    ]) {
      const answer = await served.post("/values", { list: values }, { accept: accept ?? "" });
      expect(answer.headers.get("content-type")).toBe(type);
      const lines = answer.text.trimEnd().split("\n");
      expect(lines.map((line) => JSON.parse(line))).toEqual(values);
    }
  });

  test("of bytes is the file that they make", async () => {
    const answer = await served.post("/audio", { list: ["ab", "c"] });
    expect(answer.headers.get("content-type")).toBe("audio/mpeg");
    expect(answer.headers.get("content-disposition")).toBe("inline");
    expect(answer.text).toBe("abc");
  });

  test.each([
    ["/texts", list, list],
    ["/values", values, values],
    ["/audio", ["ab", "c"], [btoa("ab"), btoa("c")]],
  ])("of %s is events with numbers where they are asked for", async (path, given, pieces) => {
    const answer = await served.post(path, { list: given }, SSE);
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const blocks = answer.text.split("\n\n").slice(0, -1);
    expect(blocks.pop()).toBe("event: end\ndata: {}");
    expect(blocks).toEqual(
      pieces.map((piece, index) => `id: ${index + 1}\ndata: ${JSON.stringify(piece)}`),
    );
  });

  test("is one JSON text for a caller that takes nothing else", async () => {
    const accept = { accept: "application/json" };
    const json = "application/json; charset=utf-8";
    const whole = await served.post("/values", { list: values }, accept);
    expect([whole.json, whole.headers.get("content-type")]).toEqual([values, json]);
    const text = await served.post("/texts", { list }, accept);
    expect([text.json, text.headers.get("content-type")]).toEqual([list.join(""), json]);
  });

  test("that is larger than a message is not given as one JSON text", async () => {
    const answer = await served.post(
      "/fill",
      { name: "whole", characters: 200_000 },
      { accept: "application/json" },
    );
    expect(refusal(answer)).toMatchObject({ status: 500, reason: "RESULT_TOO_LARGE" });
    await expect.poll(() => filledBy("whole")).toMatchObject({ left: true });
  });

  test("is in its first form for a caller that takes none of them", async () => {
    for (const [path, accept, type] of [
      ["/audio", "application/json", "audio/mpeg"],
      ["/values", "text/plain", "application/x-ndjson; charset=utf-8"],
      ["/texts", "image/png, text/plain;q=0", "text/plain; charset=utf-8"],
    ] as const) {
      const answer = await served.post(path, { list: [] }, { accept });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
    }
  });

  test("may have no pieces", async () => {
    expect(await served.post("/texts", { list: [] })).toMatchObject({ status: 200, text: "" });
    const events = await served.post("/values", { list: [] }, SSE);
    expect(events.text).toBe("event: end\ndata: {}\n\n");
  });

  test("may depend on a file in a form", async () => {
    const form = new FormData();
    form.set("text", new Blob(["a\nb"], { type: "text/plain" }));
    expect((await served.send("/lines", form)).text).toBe("a;b;");
  });
});

describe("a failure", () => {
  test.each(["/breaks", "/breaks_values"])(
    "of %s before the first piece is an ordinary answer with its status",
    async (path) => {
      const refused = refusal(await served.post(path, { pieces: 0 }));
      expect(refused).toMatchObject({ status: 400, reason: "CALL_FAILED", message: "that is all" });
    },
  );

  test("of the arguments is one too", async () => {
    expect(refusal(await served.post("/breaks", { pieces: "x" }))).toMatchObject({
      status: 400,
      reason: "ARGUMENTS_INVALID",
    });
  });

  test("in the middle is the event of an error, the last one", async () => {
    const { text } = await served.post("/breaks", { pieces: 1 }, SSE);
    const [piece, error = "", rest] = text.split("\n\n");
    expect([piece, rest]).toEqual(['id: 1\ndata: "piece;"', ""]);
    expect(error).toMatch(/^event: error\ndata: /);
    expect(JSON.parse(error.slice(error.indexOf("{")))).toMatchObject({
      code: "invalid_argument",
      message: "that is all",
    });
  });

  test("in the middle is the last line", async () => {
    const { text } = await served.post("/breaks_values", { pieces: 40 });
    const lines = text.trimEnd().split("\n");
    expect(lines.slice(0, -1)).toEqual(Array(40).fill("1"));
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ error: { message: "that is all" } });
  });

  test("in the middle of a text breaks the connection, so that nobody takes it as whole", async () => {
    await expect(served.post("/breaks", { pieces: 3 })).rejects.toThrow(/terminated/);
  });

  test("of one JSON text is an ordinary answer", async () => {
    const accept = { accept: "application/json" };
    const refused = refusal(await served.post("/breaks_values", { pieces: 3 }, accept));
    expect(refused).toMatchObject({ status: 400, message: "that is all" });
  });

  test("is a piece that the output's schema refuses", async () => {
    const { text } = await served.post("/invalid", {});
    expect(text).toMatch(/^1\n\{"error":.*invalid returned what its output schema refuses/);
  });

  test("is the end of the endpoint's time", async () => {
    const { text } = await served.post("/slow", {});
    expect(text).toMatch(/^1\n\{"error":.*slow did not end within its timeout of 300 ms/);
  });
});

describe("a call that streams", () => {
  test("is counted once, by its end, and with the time to it", async () => {
    await served.post("/slow", {});
    const counted = (name: string) =>
      new RegExp(`^${name}\\{(?=[^}]*endpoint="slow")(?=[^}]*protocol="http")[^}]*\\} (.*)$`, "m");
    const { text } = await served.get("/metrics");
    const requests = counted("tessera_requests_total").exec(text);
    expect(requests?.[0]).toContain('code="deadline_exceeded"');
    const seconds = Number(counted("tessera_request_duration_seconds_sum").exec(text)?.[1]);
    expect(seconds / Number(requests?.[1])).toBeGreaterThan(0.29);
  });

  test("needs the token that any call needs", async () => {
    await using closed = await serve("streaming", { token: "a-token-of-streams" });
    expect(refusal(await closed.post("/texts", { list: [] }, SSE))).toMatchObject({
      status: 401,
      reason: "TOKEN_MISSING",
    });
    const headers = { authorization: "Bearer a-token-of-streams" };
    expect((await closed.post("/texts", { list: ["a"] }, headers)).text).toBe("a");
  });
});

describe("a stream", () => {
  test("gives each piece when it is made", async () => {
    const { read } = await open("/gated", { gate: gate.url });
    expect(await read()).toBe("begun;");
    (await gate.arrival()).open("second;");
    expect(await read()).toBe("second;");
    (await gate.arrival()).open("end");
    expect(await read()).toBe("");
  });

  test("whose caller leaves is aborted", async () => {
    const { reader } = await open("/gated", { gate: gate.url });
    const arrival = await gate.arrival();
    await reader.cancel();
    await arrival.gone;
  });

  test("whose caller leaves before the first piece is aborted too", async () => {
    const leaving = new AbortController();
    const opened = open("/late", { gate: gate.url }, { signal: leaving.signal });
    const refused = expect(opened).rejects.toThrow(/aborted/);
    const arrival = await gate.arrival();
    leaving.abort();
    await refused;
    await arrival.gone;
  });

  test("that is read slowly stops its own function, and no other", async () => {
    const values = { name: "slow reader", characters: 100_000 };
    const slow = await open("/fill", values);
    let before = -1;
    // It stops when the buffers of the sockets are full.
    await expect
      .poll(async () => {
        const { asked } = await filledBy("slow reader");
        const stopped = asked > 0 && asked === before;
        before = asked;
        return stopped;
      })
      .toBe(true);
    const { text } = await served.post("/texts", { list: ["others", "go on"] });
    expect(text).toBe("othersgo on");
    const fast = await open("/fill", { name: "fast reader", characters: 100_000 });
    for (let bytes = 0; bytes < 50_000_000; ) {
      bytes += (await fast.reader.read()).value?.length ?? 0;
    }
    expect(await filledBy("slow reader")).toEqual({ asked: before, left: false });
    expect((await filledBy("fast reader")).asked).toBeGreaterThanOrEqual(500);
    await slow.reader.cancel();
    await fast.reader.cancel();
    await expect.poll(() => filledBy("slow reader")).toMatchObject({ left: true });
  });

  test("runs beside a thousand others, and each gets its own pieces", async () => {
    const numbers = Array.from({ length: 1_000 }, (_, number) => number);
    const answers = await Promise.all(numbers.map((number) => served.post("/gather", { number })));
    expect(answers.map(({ text }) => text)).toEqual(
      numbers.map((number) => `${number}\n`.repeat(41)),
    );
  }, 60_000);

  test("gives its pieces soon after they were made", async () => {
    const { reader } = await open("/times", { pieces: 200 });
    const delaysMs: number[] = [];
    for (;;) {
      const { done, value } = await reader.read();
      const nowMs = performance.timeOrigin + performance.now();
      if (done) {
        break;
      }
      for (const line of Buffer.from(value).toString().trimEnd().split("\n")) {
        delaysMs.push(nowMs - Number(line));
      }
    }
    expect(delaysMs.length).toBe(200);
    const medianMs = delaysMs.sort((one, other) => one - other)[100];
    // About 1 ms on a machine that has nothing else to do.
    expect(medianMs).toBeLessThan(25);
  });

  test("whose worker is killed ends with an error, and the next one runs in another", async () => {
    const { read } = await open("/gated", { gate: gate.url }, { accept: "text/event-stream" });
    expect(await read()).toBe('id: 1\ndata: "begun;"\n\n');
    process.kill((await gate.arrival()).pid, "SIGKILL");
    expect(await read()).toMatch(/^event: error\ndata: \{"code":"internal".*"WORKER_LOST"/);
    expect((await served.post("/texts", { list: ["again"] })).text).toBe("again");
  });
});

describe("over HTTP/2", () => {
  /** A call and what is heard of it. */
  function call(session: ClientHttp2Session, path: string, values: object, headers = {}) {
    const stream = session.request({
      ...{ ":method": "POST", ":path": path, "content-type": "application/json" },
      ...headers,
    });
    stream.end(JSON.stringify(values));
    return stream;
  }

  test("a stream of one connection stops no other of it, and a caller that resets it aborts it", async () => {
    const session = connect(served.origin);
    const slow = call(session, "/fill", { name: "slow over http2", characters: 100_000 });
    const asked = async () => (await filledBy("slow over http2"))?.asked ?? 0;
    await expect.poll(asked).toBeGreaterThan(0);
    const texts = call(session, "/texts", { list: ["others", "go on"] });
    expect(await text(texts)).toBe("othersgo on");
    slow.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => filledBy("slow over http2")).toMatchObject({ left: true });
    session.close();
  });

  test("a failure in the middle of a text resets the stream", async () => {
    const session = connect(served.origin);
    const broken = call(session, "/breaks", { pieces: 3 });
    await expect(text(broken)).rejects.toThrow(/NGHTTP2_INTERNAL_ERROR/);
    session.close();
  });
});
