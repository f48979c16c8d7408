/** Deadlines over every protocol, read from raw answers: a client library would invent the status. */
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GetTaskRequestSchema, WatchTaskRequestSchema } from "../../../gen/tessera/v1/task_pb.js";
import { startServer } from "./server.ts";

/** What callers allow. */
const ALLOWED_MS = 100;

/** The latest answer: a library's own wait is seconds, and a busy machine answers late. */
const LATEST_MS = 1_500;

/** Just beyond the longest time of a timer, 2^31 - 1 ms. */
const DAYS_25_SECONDS = 25 * 86_400;

const SERVICE = "/tessera.v1.TaskService";

let server: Awaited<ReturnType<typeof startServer>>;
let session: ClientHttp2Session;

beforeAll(async () => {
  server = await startServer(
    {
      getTask: ({ taskId }) =>
        taskId === "stuck" ? new Promise<never>(() => {}) : { taskId, status: 1 },
      async *watchTask({ taskId, afterSequence }, { signal }) {
        yield { sequence: afterSequence + 1n, event: { case: "state", value: { status: 2 } } };
        if (taskId === "stuck") {
          await new Promise<never>(() => {});
        } else if (taskId === "polite") {
          // Ends without an error, as if there were no more to say.
          await once(signal, "abort");
        }
      },
    },
    { http2: true },
  );
  session = connect(server.origin);
});
afterAll(async () => {
  session.destroy();
  await server[Symbol.asyncDispose]();
});

interface Answer {
  readonly head: IncomingHttpHeaders & { readonly ":status"?: number };
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly tookMs: number;
}

/** Sends a request and reads what comes back, frame by frame. Without `end`, its body stays open. */
async function ask(
  method: string,
  headers: Record<string, string>,
  body: Uint8Array,
  { end = true } = {},
): Promise<Answer> {
  const begunMs = performance.now();
  const stream = session.request({
    ":method": "POST",
    ":path": `${SERVICE}/${method}`,
    te: "trailers",
    ...headers,
  });
  let trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (received) => {
    trailers = received;
  });
  if (end) {
    stream.end(body);
  } else {
    stream.write(body);
  }
  const [head] = (await once(stream, "response")) as [Answer["head"]];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
  }
  const tookMs = performance.now() - begunMs;
  return { head, trailers, body: Buffer.concat(chunks), tookMs };
}

const getTask = (taskId: string) =>
  toBinary(GetTaskRequestSchema, create(GetTaskRequestSchema, { taskId }));
const watchTask = (taskId: string) =>
  toBinary(WatchTaskRequestSchema, create(WatchTaskRequestSchema, { taskId }));

interface Envelope {
  readonly flags: number;
  readonly data: Buffer;
}

/** The last envelope of a body, whose flag says what it is. */
function lastEnvelope(body: Buffer): Envelope {
  let last: Envelope = { flags: -1, data: Buffer.alloc(0) };
  for (let at = 0; at < body.length; ) {
    const bytes = body.readUInt32BE(at + 1);
    last = { flags: body[at] ?? -1, data: body.subarray(at + 5, at + 5 + bytes) };
    at += 5 + bytes;
  }
  return last;
}

/** Expects that the answer came at the deadline. */
function expectInTime({ tookMs }: Answer): void {
  expect(tookMs).toBeGreaterThanOrEqual(ALLOWED_MS - 5);
  expect(tookMs).toBeLessThan(LATEST_MS);
}

const GRPC = { "content-type": "application/grpc+proto", "grpc-timeout": `${ALLOWED_MS}m` };
const GRPC_WEB = { "content-type": "application/grpc-web+proto", "grpc-timeout": `${ALLOWED_MS}m` };
const CONNECT = { "connect-protocol-version": "1", "connect-timeout-ms": String(ALLOWED_MS) };

describe("a call that its implementation does not end is answered at its deadline", () => {
  it("over gRPC, with the status in the trailers", async () => {
    const answer = await ask("GetTask", GRPC, encodeEnvelope(0, getTask("stuck")));
    expectInTime(answer);
    const status = answer.trailers["grpc-status"] ?? answer.head["grpc-status"];
    expect(status).toBe("4");
  });

  it("over gRPC while its message is still arriving", async () => {
    const half = encodeEnvelope(0, getTask("stuck")).subarray(0, 7);
    const answer = await ask("GetTask", GRPC, half, { end: false });
    expectInTime(answer);
    expect(answer.trailers["grpc-status"] ?? answer.head["grpc-status"]).toBe("4");
  });

  it("over gRPC-Web, with the status in the last frame", async () => {
    const answer = await ask("GetTask", GRPC_WEB, encodeEnvelope(0, getTask("stuck")));
    expectInTime(answer);
    const { flags, data } = lastEnvelope(answer.body);
    expect(flags).toBe(0x80);
    expect(data.toString()).toMatch(/grpc-status: ?4/);
  });

  it.each([
    ["binary", "application/proto", getTask("stuck")],
    ["JSON", "application/json", Buffer.from('{"taskId":"stuck"}')],
  ])("over Connect in %s, with 504", async (_name, contentType, body) => {
    const answer = await ask("GetTask", { ...CONNECT, "content-type": contentType }, body);
    expectInTime(answer);
    expect(answer.head[":status"]).toBe(504);
    const { code, details } = JSON.parse(answer.body.toString());
    expect(code).toBe("deadline_exceeded");
    expect(details).toContainEqual(
      expect.objectContaining({ debug: expect.objectContaining({ reason: "CALL_TIMEOUT" }) }),
    );
  });
});

describe.each(["stuck", "polite"])(
  "a stream whose source is %s ends with its deadline",
  (taskId) => {
    it("over gRPC", async () => {
      const answer = await ask("WatchTask", GRPC, encodeEnvelope(0, watchTask(taskId)));
      expectInTime(answer);
      expect(lastEnvelope(answer.body).flags).toBe(0);
      expect(answer.trailers["grpc-status"]).toBe("4");
    });

    it("over gRPC-Web", async () => {
      const answer = await ask("WatchTask", GRPC_WEB, encodeEnvelope(0, watchTask(taskId)));
      expectInTime(answer);
      expect(lastEnvelope(answer.body).data.toString()).toMatch(/grpc-status: ?4/);
    });

    it.each([
      ["binary", "application/connect+proto", watchTask(taskId)],
      ["JSON", "application/connect+json", Buffer.from(JSON.stringify({ taskId }))],
    ])("over Connect in %s", async (_name, contentType, message) => {
      const headers = { ...CONNECT, "content-type": contentType };
      const answer = await ask("WatchTask", headers, encodeEnvelope(0, message));
      expectInTime(answer);
      const { flags, data } = lastEnvelope(answer.body);
      expect(flags).toBe(0b10);
      expect(JSON.parse(data.toString()).error.code).toBe("deadline_exceeded");
    });
  },
);

it("keeps no timer of a call that ended before its deadline", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
  const headers = { "content-type": "application/grpc+proto", "grpc-timeout": "1H" };
  const call = () => ask("GetTask", headers, encodeEnvelope(0, getTask("a")));
  await call();
  const before = timers();
  for (let calls = 0; calls < 20; calls++) {
    await call();
  }
  await expect.poll(timers).toBeLessThan(before + 10);
});

describe("a deadline beyond the longest timer is clamped", () => {
  it.each([
    ["gRPC", { "content-type": "application/grpc+proto", "grpc-timeout": "99999999H" }],
    ["gRPC", { "content-type": "application/grpc+proto", "grpc-timeout": `${DAYS_25_SECONDS}S` }],
    ["gRPC-Web", { "content-type": "application/grpc-web+proto", "grpc-timeout": "99999999S" }],
  ])("over %s: %o", async (_name, headers) => {
    const { head, trailers, body } = await ask("GetTask", headers, encodeEnvelope(0, getTask("a")));
    const { flags, data } = lastEnvelope(body);
    const status = flags === 0x80 ? /grpc-status: ?(\d+)/.exec(data.toString())?.[1] : undefined;
    expect(status ?? trailers["grpc-status"] ?? head["grpc-status"]).toBe("0");
  });

  it.each([
    ["gRPC", { "content-type": "application/grpc+proto", "grpc-timeout": "99999999H" }],
    ["gRPC-Web", { "content-type": "application/grpc-web+proto", "grpc-timeout": "99999999H" }],
  ])("over %s, also while its message arrives in parts", async (_name, headers) => {
    const stream = session.request({
      ":method": "POST",
      ":path": `${SERVICE}/GetTask`,
      te: "trailers",
      ...headers,
    });
    const responded = once(stream, "response");
    const body = encodeEnvelope(0, getTask("a"));
    stream.write(body.subarray(0, 3));
    if (session.connecting) {
      await once(session, "connect");
    }
    // A timer of the shortest time would have fired by then.
    for (const untilMs = performance.now() + 20; performance.now() < untilMs; ) {
      await new Promise((answered) => session.ping(answered));
    }
    stream.end(body.subarray(3));
    const [head] = (await responded) as [IncomingHttpHeaders];
    const chunks: Buffer[] = await stream.toArray();
    expect(head["grpc-status"] ?? "0").toBe("0");
    expect(Buffer.concat(chunks).subarray(5).toString()).toContain("a");
  });

  it.each(["application/proto", "application/json"])("over Connect in %s", async (contentType) => {
    const headers = { "content-type": contentType, "connect-timeout-ms": "9999999999" };
    const body = contentType.endsWith("json") ? Buffer.from('{"taskId":"a"}') : getTask("a");
    expect((await ask("GetTask", headers, body)).head[":status"]).toBe(200);
  });
});
