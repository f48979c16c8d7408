import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeFrame, encodeMessage, FrameReader } from "../../src/protocol/frames.ts";
import { type CallResult, goesAsJson, type NodeMessage } from "../../src/protocol/messages.ts";

function read(chunks: readonly Buffer[], maxBytes = 1_000_000) {
  const messages: unknown[] = [];
  const broken: string[] = [];
  const reader = new FrameReader({
    maxBytes,
    onMessage: (message) => messages.push(message),
    onBroken: (reason) => broken.push(reason),
  });
  for (const chunk of chunks) {
    reader.push(chunk);
  }
  return { messages, broken };
}

/** The bytes cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  let begin = 0;
  return ends.map((end) => {
    const chunk = bytes.subarray(begin, end);
    begin = end;
    return chunk;
  });
}

describe("frames", () => {
  test("arrive as they were sent, as JSON or not, wherever the stream is cut", () => {
    const text = fc.string({ unit: "binary" });
    const message = fc.oneof(
      fc.record({ text, bytes: fc.uint8Array(), list: fc.array(fc.nat()) }),
      fc.record({ text, json: fc.constant(true), list: fc.array(text) }),
    );
    fc.assert(
      fc.property(fc.array(message), fc.array(fc.nat()), (sent, places) => {
        const stream = Buffer.concat(sent.map((one) => encodeFrame(one, "json" in one)));
        expect(read(cut(stream, places))).toEqual({ messages: sent, broken: [] });
      }),
    );
  });

  test("of calls and results arrive as they were sent, with texts of any length and with bytes", () => {
    const strange = fc.constantFrom("x".repeat(1_000), "half of a pair: \ud800", "\0");
    const text = fc.oneof(fc.string({ unit: "binary" }), strange);
    const files = fc.array(fc.record({ contentType: fc.constant("a/b"), data: fc.uint8Array() }));
    const payload = fc.oneof(text, fc.record({ json: text, files }));
    const id = fc.nat();
    const call = fc.record({
      id,
      endpoint: text,
      arguments: payload,
      taskId: text,
      attempt: id,
      deadlineMs: id,
    });
    const failure = fc.record({
      code: text,
      reason: fc.constant("CALL_FAILED" as const),
      message: text,
    });
    const result: fc.Arbitrary<CallResult> = fc.oneof(
      fc.record({ id, result: payload }),
      fc.record({ id, failure }),
    );
    const message = fc.oneof(
      fc.array(call).map((calls): NodeMessage => ({ type: "calls", calls })),
      fc.array(result).map((results) => ({ type: "results" as const, results })),
    );
    fc.assert(
      fc.property(message, (sent) => {
        const { messages, broken } = read([encodeMessage(sent)]);
        expect(broken).toEqual([]);
        expect(messages).toEqual([sent]);
      }),
    );
    const short = { type: "results" as const, results: [{ id: 1, result: "1" }] };
    expect(goesAsJson(short)).toBe(true);
    expect(goesAsJson({ ...short, results: [{ id: 1, result: "1".repeat(1_000) }] })).toBe(false);
  });

  test("of JSON that cannot be read break the stream too", () => {
    const { messages, broken } = read([Buffer.from([2, 0, 0, 0]), Buffer.from("{]")]);
    expect(messages).toEqual([]);
    expect(broken).toEqual([expect.stringContaining("cannot be read")]);
  });

  test("that are too large break the stream before they have arrived", () => {
    const stream = Buffer.concat([encodeFrame("small", false), encodeFrame("x".repeat(100), true)]);
    const { messages, broken } = read([stream.subarray(0, stream.length - 50)], 50);
    expect(messages).toEqual(["small"]);
    expect(broken).toEqual([expect.stringContaining("the limit is 50")]);
  });

  test("that cannot be read break the stream once, and nothing after them is read", () => {
    const rubbish = Buffer.concat([Buffer.from([3, 0, 0, 0]), Buffer.from("abc")]);
    const { messages, broken } = read([rubbish, encodeFrame("after", false), rubbish]);
    expect(messages).toEqual([]);
    expect(broken).toHaveLength(1);
  });
});
