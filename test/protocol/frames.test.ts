import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OutgoingAttachments } from "../../src/protocol/attachments.ts";
import { encodeFrame } from "../../src/protocol/codec.ts";
import { FrameReader } from "../../src/protocol/frames.ts";
import { announced, body, frame, framed } from "../fixtures/frames.ts";

const LIMITS = { maxBytes: 1_000_000, maxHeaderBytes: 100_000, maxAttachments: 100 };

function read(chunks: readonly Buffer[], limits: Partial<typeof LIMITS> = {}) {
  const messages: unknown[] = [];
  const broken: string[] = [];
  const reader = new FrameReader({
    ...LIMITS,
    ...limits,
    onMessage: (message) => messages.push(message),
    onBroken: (reason) => broken.push(reason),
  });
  for (const chunk of chunks) {
    reader.push(chunk);
  }
  return { messages, broken };
}

/** Reads one frame, and takes what `references` finds in its header. */
function taken(bytes: Buffer, references: (header: never) => readonly unknown[]) {
  const found: (string | undefined)[] = [];
  const faults: (string | undefined)[] = [];
  const reader = new FrameReader({
    ...LIMITS,
    onMessage(header, attachments) {
      found.push(...references(header as never).map((one) => attachments.take(one)?.toString()));
      faults.push(attachments.fault);
    },
    onBroken: (reason) => faults.push(reason),
  });
  reader.push(bytes);
  return { found, fault: faults[0] };
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
  test("arrive as they were sent, wherever the stream is cut", () => {
    const text = fc.string({ unit: "binary" });
    const message = fc.record({
      header: fc.record({ text, list: fc.array(text) }),
      bytes: fc.array(fc.uint8Array({ maxLength: 200 })),
    });
    fc.assert(
      fc.property(fc.array(message), fc.array(fc.nat()), (sent, places) => {
        const stream = sent.map(({ header, bytes }) => {
          const attachments = new OutgoingAttachments();
          const named = bytes.map((one) => attachments.add(one));
          return encodeFrame({ header, named }, attachments);
        });
        const got: { header: unknown; bytes: (Uint8Array | undefined)[]; fault?: string }[] = [];
        const reader = new FrameReader({
          ...LIMITS,
          onMessage(one, attachments) {
            const { header, named } = one as { header: unknown; named: unknown[] };
            const bytes = named.map((each) => {
              const view = attachments.take(each);
              return view && new Uint8Array(view);
            });
            expect(attachments.fault).toBeUndefined();
            got.push({ header, bytes });
          },
          onBroken: (reason) => expect.unreachable(reason),
        });
        for (const chunk of cut(Buffer.concat(stream), places)) {
          reader.push(chunk);
        }
        expect(got).toEqual(sent);
      }),
    );
  });

  test("have the bytes that the protocol says", () => {
    const attachments = new OutgoingAttachments();
    const header = { a: attachments.add("é"), b: attachments.add(Buffer.from([7])) };
    const text = '{"a":{"$":[0,2]},"b":{"$":[2,1]}}';
    expect(encodeFrame(header, attachments)).toEqual(
      frame(Buffer.from(text), Buffer.from("é\x07")),
    );
    expect(encodeFrame({ a: "é" })).toEqual(frame(Buffer.from('{"a":"é"}')));
  });

  test("of a header that cannot be read break the stream", () => {
    const { messages, broken } = read([frame(Buffer.from("{]"))]);
    expect(messages).toEqual([]);
    expect(broken).toEqual([expect.stringContaining("cannot be read")]);
  });

  test("that are too large break the stream before they have arrived", () => {
    const stream = Buffer.concat([encodeFrame("small"), encodeFrame("x".repeat(100))]);
    const { messages, broken } = read([stream.subarray(0, stream.length - 50)], { maxBytes: 50 });
    expect(messages).toEqual(["small"]);
    expect(broken).toEqual([expect.stringContaining("the limit is 50")]);
  });

  test("whose header is too large break the stream before it has arrived", () => {
    const stream = encodeFrame("x".repeat(100));
    const { broken } = read([stream.subarray(0, 9)], { maxHeaderBytes: 50 });
    expect(broken).toEqual(["it sent a message with a header of 102 bytes; the limit is 50"]);
  });

  test.each([
    ["of 4 GiB", announced(0xffff_ffff), "of 4294967295 bytes; the limit is"],
    ["of 0 bytes", announced(0), "no room for a header"],
    ["of 4 bytes", framed(Buffer.from("abcd")), "no room for a header"],
    ["of rubbish", framed(Buffer.from("abcdef")), "a format that the protocol does not have"],
    ["of V8's format", framed(Buffer.from([0xff, 15, 65, 0, 36, 0])), "a format that"],
    ["without a header", framed(body(Buffer.alloc(0))), "cannot be read"],
    ["that end in their header", framed(body("text").subarray(0, 9)), "longer than the message"],
  ])("%s break the stream once, and nothing after them is read", (_, bad, said) => {
    for (const stream of [[bad], cut(bad, [1, 2, 3, 4, 5, 6, 7, 8, 9])]) {
      const { messages, broken } = read([...stream, encodeFrame("after"), bad]);
      expect(messages).toEqual([]);
      expect(broken).toEqual([expect.stringContaining(said)]);
    }
  });

  test("that do not end hold no more than what has come of them", () => {
    const stream = frame("x".repeat(200_000)).subarray(0, 100_000);
    stream.writeUInt32LE(2 ** 30, 0);
    const heldBytes = process.memoryUsage().arrayBuffers;
    const readers = Array.from({ length: 100 }, () => {
      const reader = new FrameReader({
        maxBytes: 2 ** 30,
        onMessage: () => expect.unreachable(),
        onBroken: (reason) => expect.unreachable(reason),
      });
      // In small pieces: none of them is kept by itself.
      for (let at = 0; at < stream.length; at += 10) {
        reader.push(stream.subarray(at, at + 10));
      }
      return reader;
    });
    expect(readers).toHaveLength(100);
    expect(process.memoryUsage().arrayBuffers - heldBytes).toBeLessThan(100 * 1_100_000);
  });
});

describe("attachments", () => {
  const bytes = (offset: unknown, length: unknown) => ({ $: [offset, length] });
  const take = (list: readonly unknown[], text = "1234") =>
    taken(frame({ list }, Buffer.from(text)), (header: { list: unknown[] }) => header.list);

  test("are taken one after the other, empty ones too", () => {
    expect(take([bytes(0, 1), bytes(1, 0), bytes(1, 3), bytes(4, 0)])).toEqual({
      found: ["1", "", "234", ""],
      fault: undefined,
    });
  });

  test.each([
    ["overlap", [bytes(0, 3), bytes(2, 2)], "at 2, and the next one begins at 3"],
    ["are named twice", [bytes(0, 4), bytes(0, 4)], "at 0, and the next one begins at 4"],
    ["leave some out between them", [bytes(0, 1), bytes(2, 2)], "the next one begins at 1"],
    ["end outside", [bytes(0, 5)], "bytes 0 to 5 of its attachments, which have 4"],
    ["lie outside", [bytes(2 ** 53 - 1, 2 ** 53 - 1)], "of its attachments, which have 4"],
    ["leave some out at the end", [bytes(0, 3)], "1 bytes of attachments"],
    ["have a place below zero", [bytes(-1, 4)], "4 bytes of attachments"],
    ["have half a place", [bytes(0.5, 4)], "4 bytes of attachments"],
    ["have no length", [{ $: [0] }], "4 bytes of attachments"],
    ["have a text for a length", [bytes(0, "4")], "4 bytes of attachments"],
    ["are too many", Array(101).fill(bytes(0, 0)), "too many"],
  ])("that %s are a fault", (_, list, said) => {
    expect(take(list).fault).toContain(said);
  });

  test("after a fault are not taken", () => {
    expect(take([bytes(1, 1), bytes(0, 4)]).found).toEqual([undefined, undefined]);
  });
});
