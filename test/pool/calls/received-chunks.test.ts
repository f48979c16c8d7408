import { describe, expect, test } from "vitest";
import { ReceivedChunks } from "../../../src/pool/calls/received-chunks.ts";
import { MAX_INLINE_FILE_BYTES } from "../../../src/protocol/messages.ts";

const chunk = (sequence: number, data: string | Uint8Array = "1") => ({ id: 1, sequence, data });

describe("the chunks of a call", () => {
  test("are taken in their order alone, each once", () => {
    const chunks = new ReceivedChunks({ pieces: "json" });
    expect(chunks.take(chunk(2))).toBeUndefined();
    expect(chunks.take(chunk(1))).toBe("1");
    expect(chunks.take(chunk(1))).toBeUndefined();
    expect(chunks.take(chunk(2))).toBe("1");
  });

  test("are taken within the window in bytes, and one that fills it whole", () => {
    const chunks = new ReceivedChunks({ pieces: "bytes" });
    const large = new Uint8Array(200_000);
    expect([1, 2].map((sequence) => chunks.take(chunk(sequence, large)))).toEqual([large, large]);
    expect(chunks.take(chunk(3, new Uint8Array(0)))).toBeUndefined();
    expect(chunks.consumed(1)).toBe(1);
    expect(chunks.take(chunk(3, large))).toBe(large);
    expect(chunks.take(chunk(4, large))).toBeUndefined();
  });

  test("are taken within the window, whose room is told of in halves", () => {
    const chunks = new ReceivedChunks({ pieces: "json" });
    for (let sequence = 1; sequence <= 32; sequence += 1) {
      expect(chunks.take(chunk(sequence))).toBe("1");
    }
    expect(chunks.take(chunk(33))).toBeUndefined();
    expect(chunks.consumed(15)).toBe(0);
    expect(chunks.take(chunk(33))).toBeUndefined();
    expect(chunks.consumed(2)).toBe(17);
    expect(chunks.take(chunk(33))).toBe("1");
    expect(chunks.consumed(1)).toBe(0);
  });

  test("are in the form that the endpoint declares", () => {
    const long = Buffer.from("ä".repeat(200));
    expect(new ReceivedChunks({ pieces: "text" }).take(chunk(1, long))).toBe(long.toString());
    expect(new ReceivedChunks({ pieces: "bytes" }).take(chunk(1, long))).toBe(long);
    expect(new ReceivedChunks({ pieces: "bytes" }).take(chunk(1, "text"))).toBeUndefined();
    const large = new Uint8Array(MAX_INLINE_FILE_BYTES + 1);
    expect(new ReceivedChunks({ pieces: "bytes" }).take(chunk(1, large))).toBeUndefined();
  });

  test("end with their number", () => {
    const chunks = new ReceivedChunks({ pieces: "text" });
    chunks.take(chunk(1));
    expect([chunks.isEnd("1"), chunks.isEnd("2"), chunks.isEnd({ json: "1", files: [] })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
