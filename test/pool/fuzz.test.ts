/**
 * A fuzzer of what a worker sends: frames of every kind, mutated, and frames made of
 * parts, read as `ServiceProcess` reads them, in chunks as a socket gives them. It is
 * seeded; TESSERA_FUZZ_SECONDS and TESSERA_FUZZ_SEED make it longer and different.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readWorkerMessage } from "../../src/pool/checks/check.ts";
import { FrameReader } from "../../src/protocol/frames.ts";
import {
  MAX_ATTACHMENTS,
  MAX_HEADER_BYTES,
  MAX_MANIFEST_BYTES,
} from "../../src/protocol/messages.ts";
import { BAD_FRAMES, body, framed } from "../fixtures/frames.ts";
import { sent } from "../fixtures/sent.ts";
import { threadTimer } from "../thread-time.ts";

const SECONDS = Number(process.env.TESSERA_FUZZ_SECONDS ?? 3);
const SEED = Number(process.env.TESSERA_FUZZ_SEED ?? 17);
/** What a socket gives at a time. */
const CHUNK_BYTES = 64 * 1024;
const MEBIBYTE = 1024 ** 2;
const WARM_READS = 200;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What this process keeps: the garbage of a fuzzer is not the reader's. */
function keptBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Reads bytes as the node does. Returns the longest time that one chunk took, in ms. */
function read(bytes: Buffer, chunkBytes: number): number {
  let longestMs = 0;
  let broken = false;
  const reader = new FrameReader({
    maxBytes: MAX_MANIFEST_BYTES + 2 * MAX_HEADER_BYTES,
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxAttachments: MAX_ATTACHMENTS,
    onMessage(header, attachments) {
      const message = readWorkerMessage(header, attachments);
      if (message === undefined || attachments.fault !== undefined) {
        broken = true;
        reader.end();
      }
    },
    onBroken() {
      broken = true;
    },
  });
  for (let at = 0; at < bytes.length && !broken; at += chunkBytes) {
    const spentMs = threadTimer();
    reader.push(bytes.subarray(at, at + chunkBytes));
    longestMs = Math.max(longestMs, spentMs());
  }
  return longestMs;
}

test(
  "whatever a worker sends is read without a throw, a stall or much memory",
  () => {
    let reads = 0;
    let heldBytes = 0;
    let longestMs = 0;
    fc.assert(
      fc.property(
        sent,
        fc.constantFrom(CHUNK_BYTES, CHUNK_BYTES, 1_000, 7),
        (bytes, chunkBytes) => {
          longestMs = Math.max(longestMs, read(bytes, chunkBytes));
          reads += 1;
          // From here on the fuzzer itself is warm.
          if (reads === WARM_READS) {
            heldBytes = keptBytes();
          }
        },
      ),
      {
        seed: SEED,
        numRuns: 1_000_000,
        interruptAfterTimeLimit: SECONDS * 1_000,
        markInterruptAsFailure: false,
      },
    );
    expect(reads).toBeGreaterThan(WARM_READS);
    expect(longestMs).toBeLessThan(50);
    expect(keptBytes() - heldBytes).toBeLessThan(64 * MEBIBYTE);
  },
  SECONDS * 1_000 + 60_000,
);

const filled = (text: string) => text.repeat(Math.floor(MAX_MANIFEST_BYTES / text.length));
const attached = (header: object, text: string) => {
  const bytes = Buffer.from(text);
  return framed(body({ ...header, manifest: { $: [0, bytes.length] } }, bytes));
};
const keys = Array.from({ length: 24_000 }, (_, key) => `"${String(key).padStart(150)}":1`);

test.each<[string, () => Buffer]>([
  ...Object.entries(BAD_FRAMES).map(([name, [bad]]): [string, () => Buffer] => [name, bad]),
  ["a header of empty objects", () => framed(body(Buffer.from(`[${"{},".repeat(21_000)}1]`)))],
  ["a manifest of empty objects", () => attached({ type: "ready" }, `[${filled("{},")}1]`)],
  ["a manifest of spaces", () => attached({ type: "ready" }, filled(" "))],
  ["a manifest of quotes", () => attached({ type: "ready" }, filled('"\\"",'))],
  ["a manifest of one text", () => attached({ type: "ready" }, `"${filled("x").slice(2)}"`)],
  ["a manifest of many keys", () => attached({ type: "ready" }, `{${keys.join()}}`)],
])("%s stalls nobody", (_, make) => {
  const bytes = make();
  expect(Math.min(...[1, 2, 3, 4, 5].map(() => read(bytes, CHUNK_BYTES)))).toBeLessThan(50);
});
