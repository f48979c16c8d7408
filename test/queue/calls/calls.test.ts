import { expect, it } from "vitest";
import type { ExecutionEnd } from "../../../src/pool/calls/execution.ts";
import type { Pool, Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { Calls } from "../../../src/queue/calls/calls.ts";

const RESULT: ExecutionEnd = { kind: "result", result: { json: "1", files: [] } };
const UNBEGUN: ExecutionEnd = { kind: "displaced", message: "it had ended", unbegun: true };
const BEGUN: ExecutionEnd = { kind: "displaced", message: "it was killed" };

/** Calls an api whose executions end like this, one after the other. */
function callOver(...ends: ExecutionEnd[]) {
  const slot = {
    execute: (_: unknown, { onEnd }: { onEnd(end: ExecutionEnd): void }) => {
      setImmediate(() => onEnd(ends.shift() ?? RESULT));
      return { abort() {} };
    },
    release() {},
  };
  const calls = new Calls({
    pool: { reserve: () => slot as unknown as Slot } as unknown as Pool,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    newId: () => "a",
  });
  const endpoint = { name: "work", kind: "api", timeoutMs: 1_000 } as EndpointManifest;
  const { signal } = new AbortController();
  return calls.call(endpoint, { json: "{}", files: [] }, { signal });
}

it("gives a call to another worker whose own ended before its function began", async () => {
  expect(await callOver(UNBEGUN, UNBEGUN, RESULT)).toEqual({ json: "1", files: [] });
});

it("gives no call to another worker whose function may have begun", async () => {
  await expect(callOver(BEGUN, RESULT)).rejects.toMatchObject({ reason: "WORKER_LOST" });
});

it("gives up a call whose workers end again and again", async () => {
  const ends = [UNBEGUN, UNBEGUN, UNBEGUN, RESULT];
  await expect(callOver(...ends)).rejects.toMatchObject({ reason: "WORKER_LOST" });
});
