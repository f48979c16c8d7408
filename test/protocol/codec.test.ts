import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readWorkerMessage } from "../../src/pool/checks/check.ts";
import type { Attachments } from "../../src/protocol/attachments.ts";
import { decodeNodeMessage, encodeMessage } from "../../src/protocol/codec.ts";
import { FrameReader } from "../../src/protocol/frames.ts";
import {
  type CallFailure,
  type CallResult,
  MAX_ATTACHMENTS,
  MAX_CHUNKS_PER_MESSAGE,
  MAX_FAILURE_BYTES,
  MAX_HEADER_BYTES,
  type NodeMessage,
  type SentPayload,
  type WorkerMessage,
} from "../../src/protocol/messages.ts";

/** What is read of a message that was sent, and how many bytes its header had. */
function sent<Message>(
  message: NodeMessage | WorkerMessage,
  decode: (header: unknown, attachments: Attachments) => Message,
): { message: Message | undefined; headerBytes: number } {
  let received: Message | undefined;
  const bytes = encodeMessage(message);
  const reader = new FrameReader({
    maxBytes: 100_000_000,
    maxAttachments: MAX_ATTACHMENTS,
    onMessage(header, attachments) {
      received = decode(header, attachments);
      expect(attachments.fault).toBeUndefined();
    },
    onBroken: (reason) => expect.unreachable(reason),
  });
  reader.push(bytes);
  return { message: received, headerBytes: bytes.readUInt32LE(5) };
}

const strange = fc.constantFrom("x".repeat(1_000), "half of a pair: \ud800", "\0");
const text = fc.oneof(fc.string({ unit: "binary" }), strange);
const files = fc.array(fc.record({ contentType: fc.constant("a/b"), data: fc.uint8Array() }), {
  maxLength: 1,
});
const payload = fc.oneof(text, fc.record({ json: text, files }));
const id = fc.nat();

describe("messages", () => {
  test("of a call whose JSON is bytes arrive as those of a text, at the head of its request, too", () => {
    const json = JSON.stringify({ text: "ä".repeat(50_000) });
    const call = { id: 1, endpoint: "run", taskId: "t", attempt: 1, deadlineMs: 1 };
    const calls = (rest: Omit<SentPayload, "files">) => [
      { ...call, arguments: { files: [], ...rest } },
    ];
    const request = { method: "POST", url: "/", headers: [], client: "::1" };
    for (const head of [{}, { request }]) {
      const jsonBytes = Buffer.from(json);
      const given = { type: "calls", calls: calls({ json: "", jsonBytes, ...head }) } as const;
      const { message } = sent(given, decodeNodeMessage);
      expect(message).toEqual({ type: "calls", calls: calls({ json, ...head }) });
    }
  });

  test("of calls arrive as they were sent, with texts of any length and with bytes", () => {
    const call = fc.record({
      id,
      endpoint: text,
      arguments: payload,
      taskId: text,
      attempt: id,
      deadlineMs: id,
    });
    fc.assert(
      fc.property(fc.array(call, { maxLength: MAX_ATTACHMENTS / 2 }), (calls) => {
        const { message } = sent({ type: "calls", calls }, decodeNodeMessage);
        expect(plain(message)).toEqual(plain({ type: "calls", calls }));
      }),
    );
  });

  test("of results arrive as they were sent, with texts of any length and with bytes", () => {
    const failure = fc.record({
      code: text,
      reason: fc.constant("CALL_FAILED" as const),
      message: text,
    });
    const result: fc.Arbitrary<CallResult> = fc.oneof(
      fc.record({ id, result: payload }),
      fc.record({ id, failure }),
    );
    fc.assert(
      fc.property(fc.array(result, { maxLength: MAX_ATTACHMENTS / 2 }), (results) => {
        const { message } = sent({ type: "results", results }, readWorkerMessage);
        expect(plain(message)).toEqual(plain({ type: "results", results }));
      }),
    );
  });

  test("of chunks arrive as they were sent: short texts, and the bytes of long ones", () => {
    const chunk = fc.record({
      id: fc.integer({ min: 1 }),
      sequence: fc.integer({ min: 1 }),
      data: fc.oneof(text, fc.uint8Array()),
    });
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: MAX_CHUNKS_PER_MESSAGE }), (chunks) => {
        const { message } = sent({ type: "chunks", chunks }, readWorkerMessage);
        const read = chunks.map(({ data, ...of }) =>
          typeof data === "string" && data.length > 256
            ? { ...of, data: Buffer.from(data) }
            : { ...of, data },
        );
        expect(plain(message)).toEqual(plain({ type: "chunks", chunks: read }));
      }),
    );
  });

  test("of code of any length arrive as they were sent", () => {
    for (const code of ["export default 5", "// ä\n".repeat(100_000)]) {
      const load: NodeMessage = {
        type: "load",
        servicePath: "/service.js",
        code,
        maxFileBytes: 1,
        maxResultBytes: 1,
        scratchFolder: "/",
      };
      expect(sent(load, decodeNodeMessage).message).toEqual(load);
    }
  });

  const long = "\u0001".repeat(8_192);
  const results = (result: CallResult) => ({
    type: "results" as const,
    results: Array(64).fill(result),
  });
  test.each<[string, WorkerMessage]>([
    [
      "log lines",
      {
        type: "log",
        id: 1,
        level: "info",
        message: long,
        fieldsJson: JSON.stringify({ a: long.slice(0, 1_000) }),
      },
    ],
    ["refusals", { type: "refused", message: long }],
    ["what is said before", { type: "readiness", said: long.slice(0, 1_024) }],
    ["short results", results({ id: 1, result: JSON.stringify("\\".repeat(120)) })],
    ["long results", results({ id: 1, result: JSON.stringify("x".repeat(1_000)) })],
    [
      "chunks",
      {
        type: "chunks",
        chunks: Array(MAX_CHUNKS_PER_MESSAGE).fill({
          id: Number.MAX_SAFE_INTEGER,
          sequence: Number.MAX_SAFE_INTEGER,
          data: "\u0001".repeat(256),
        }),
      },
    ],
    [
      "failures",
      results({ id: 1, failure: { code: "internal", reason: "CALL_FAILED", message: long } }),
    ],
  ])("of %s arrive, and their header is within its limit", (_, message) => {
    const { message: received, headerBytes } = sent(message, readWorkerMessage);
    expect(received).toEqual(message);
    expect(headerBytes).toBeLessThanOrEqual(MAX_HEADER_BYTES);
  });

  test("of a failure that is too long go without its stack and violations", () => {
    const failure: CallFailure = {
      code: "internal",
      reason: "CALL_FAILED",
      message: "no",
      stack: "x".repeat(MAX_FAILURE_BYTES),
    };
    const { message } = sent({ type: "results", results: [{ id: 1, failure }] }, readWorkerMessage);
    const short = { code: "internal", reason: "CALL_FAILED", message: "no" };
    expect(message).toEqual({ type: "results", results: [{ id: 1, failure: short }] });
  });
});

/** With the bytes as plain lists: a view is as good as the bytes. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, one) =>
      one?.type === "Buffer" ? one.data : one instanceof Uint8Array ? Array.from(one) : one,
    ),
  );
}
