import { writeSync } from "node:fs";
import fc from "fast-check";
import { api, service } from "tessera-platform";
import * as z from "zod";
import { readWorkerMessage } from "../../../../src/pool/checks/check.ts";
import { FrameReader } from "../../../../src/protocol/frames.ts";
import {
  MAX_ATTACHMENTS,
  MAX_HEADER_BYTES,
  MAX_MANIFEST_BYTES,
} from "../../../../src/protocol/messages.ts";
import { plausible, sent } from "../../../fixtures/sent.ts";

/** Messages that a node takes of a worker at any time. */
const HARMLESS: ReadonlySet<string> = new Set(["progress", "log", "pong"]);

/** True when the worker survives these bytes, as its node reads them. */
function isHarmless(bytes: Buffer): boolean {
  let readBytes = 0;
  let isBad = false;
  const reader = new FrameReader({
    maxBytes: MAX_MANIFEST_BYTES + 2 * MAX_HEADER_BYTES,
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxAttachments: MAX_ATTACHMENTS,
    onMessage(header, attachments) {
      const message = readWorkerMessage(header, attachments);
      isBad ||= message === undefined || attachments.fault !== undefined;
      isBad ||= !HARMLESS.has(message?.type ?? "");
    },
    onBroken() {
      isBad = true;
    },
  });
  for (let at = 0; at < bytes.length && !isBad; at = readBytes) {
    // Whole frames only: half of one would swallow what comes after it.
    readBytes = at + 4 + (at + 4 <= bytes.length ? bytes.readUInt32LE(at) : bytes.length);
    isBad ||= readBytes > bytes.length;
    if (!isBad) {
      reader.push(bytes.subarray(at, readBytes));
    }
  }
  return bytes.length > 0 && !isBad;
}

/** Writes on the channel between worker and node, as only the worker's program should. */
async function send(bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(3, bytes, at);
    } catch {
      // The node has not read what is there.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

export default service({
  name: "fuzzing",
  endpoints: {
    /** Sends what the seed generates and its worker survives; answers how much that was. */
    attack: api(
      { input: { seed: z.int(), count: z.int() }, timeout: "5s" },
      async ({ seed, count }) => {
        const harmless = fc
          .sample(fc.oneof(plausible, sent), { seed, numRuns: count })
          .filter(isHarmless);
        for (const bytes of harmless) {
          await send(bytes);
        }
        return harmless.length;
      },
    ),
    /** Sends the first thing that its worker may not survive. */
    strike: api({ input: { seed: z.int() }, timeout: "1s" }, async ({ seed }) => {
      const all = fc.sample(sent, { seed, numRuns: 20 });
      await send(all.find((bytes) => !isHarmless(bytes)) ?? Buffer.alloc(0));
    }),
  },
});
