import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { giveBack } from "../../../src/collections/bytes.ts";
import type { MountRequestsOptions } from "../../../src/pool/calls/mount-requests.ts";
import type { Transfers } from "../../../src/pool/calls/transfers.ts";
import { WorkerCalls } from "../../../src/pool/calls/worker-calls.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";

test("a call that has ended before it was sent is not sent, as its arguments are given back", async () => {
  const frames: Buffer[] = [];
  const transfers = { isCollecting: () => false, ended() {} } as unknown as Transfers;
  const calls = new WorkerCalls(
    { graceMs: 1_000, transfers: () => transfers, mounts: {} as MountRequestsOptions },
    {
      hasEnded: () => false,
      isBlocked: () => false,
      sacrifice() {},
      send: (message) => void frames.push(encodeMessage(message)),
    },
  );
  const begin = () => {
    const jsonBytes = Buffer.allocUnsafeSlow(20_000);
    const payload = { json: "", jsonBytes, files: [] };
    const work = { endpoint: "work", taskId: "a", attempt: 1, kind: "api" } as const;
    const call = { ...work, arguments: payload, timeoutMs: 60_000 };
    calls.begin(call, { onEnd: () => giveBack(jsonBytes) });
  };
  begin();
  calls.loseAll({ cause: "killed", message: "it was killed" });
  await setImmediate();
  expect(frames).toEqual([]);
  begin();
  await setImmediate();
  expect(frames).toHaveLength(1);
});
