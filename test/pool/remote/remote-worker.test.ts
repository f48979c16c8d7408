/** A worker on another machine, as its node sees it: the test plays the stream. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ExecuteOptions, ExecutionEnd } from "../../../src/pool/calls/execution.ts";
import type { HeldCall, RemoteMessage, RemoteStream } from "../../../src/pool/remote/messages.ts";
import { RemoteWorker } from "../../../src/pool/remote/remote-worker.ts";
import { endpoint, manifestOf } from "../../service/manifests.ts";
import { files } from "../local-workers.ts";

const work = endpoint({ name: "work", kind: "task" });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "setImmediate", "performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A worker that offers slots, and what it is sent. */
function connected(
  options: { readonly lastCall?: number; readonly held?: readonly HeldCall[] } = {},
) {
  const sent: RemoteMessage[] = [];
  const stream: RemoteStream = { send: (message) => sent.push(message), end: () => {} };
  const worker = new RemoteWorker({
    id: "w",
    machine: { hostname: "gpu-1", platform: "linux-x64", version: "1.0.0", labels: {} },
    lease: { session: "s" },
    revision: 1,
    manifest: manifestOf(work),
    graceMs: 1_000,
    silenceMs: 15_000,
    keepers: files,
    maxFileBytes: 1_000,
    maxResultBytes: 1_000,
    onCapacity: () => {},
    ...options,
  });
  worker.connect(stream);
  worker.offers(new Map([["work", 4]]));
  return { worker, stream, sent };
}

/** Begins a call. Returns how it ended, as soon as it has. */
function begin(
  worker: RemoteWorker,
  options: Partial<ExecuteOptions> = {},
): { end?: ExecutionEnd } {
  const seen: { end?: ExecutionEnd } = {};
  const facts = { endpoint: "work", taskId: "t", attempt: 1, timeoutMs: 60_000 } as const;
  worker.execute(
    { ...facts, kind: "task", arguments: { json: "{}", files: [] }, ...options },
    {
      onEnd: (end) => {
        seen.end = end;
      },
    },
  );
  vi.advanceTimersByTime(1);
  return seen;
}

/** Passes time in which the worker is heard. */
function pass(worker: RemoteWorker, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    worker.heard();
    vi.advanceTimersByTime(1_000);
  }
}

test("a call whose arrival was not told in five seconds did not run", () => {
  const { worker } = connected();
  const call = begin(worker);
  pass(worker, 7);
  expect(call.end).toMatchObject({ kind: "displaced" });
});

test("a call whose arrival was told goes on", () => {
  const { worker } = connected();
  const call = begin(worker);
  worker.accepted([1]);
  pass(worker, 7);
  expect(call.end).toBeUndefined();
});

test("a worker on a drained machine takes no new call, ends those that it has, and stays", () => {
  const { worker } = connected();
  const call = begin(worker);
  worker.accepted([1]);
  worker.drained(true);
  expect(worker).toMatchObject({ loaded: false, isDraining: true, ended: false });
  expect(worker.freeSlots(work)).toBe(0);
  worker.offers(new Map([["work", 4]]));
  expect(worker.freeSlots(work)).toBe(0);
  worker.finish({ id: 1, result: "1" });
  vi.advanceTimersByTime(1);
  expect(call.end).toMatchObject({ kind: "result" });
  pass(worker, 20);
  expect(worker.ended).toBe(false);
  worker.drained(false);
  expect(worker.loaded).toBe(true);
  expect(worker.freeSlots(work)).toBeGreaterThan(0);
});

test("a call that a worker comes back with has arrived", () => {
  const { worker, stream } = connected();
  const call = begin(worker);
  worker.disconnect(stream);
  const held = { id: 1, taskId: "t", attempt: 1, endpoint: "work" };
  expect(worker.resume([held])).toEqual([1]);
  worker.connect(stream);
  pass(worker, 7);
  expect(call.end).toBeUndefined();
});

test("the calls of a worker that another node had have numbers that it was not given there", () => {
  const { worker, sent } = connected({ lastCall: 7 });
  begin(worker);
  expect(sent.at(-1)).toMatchObject({ type: "calls", calls: [{ id: 8 }] });
  expect(worker.finish({ id: 7, result: "1" })).toBeUndefined();
});

test("a call that was assigned as the stream broke waits for what the worker holds", () => {
  const { worker, stream } = connected();
  const [first, second] = [begin(worker), begin(worker)];
  worker.disconnect(stream);
  pass(worker, 7);
  expect([first.end, second.end]).toEqual([undefined, undefined]);
  worker.resume([{ id: 1, taskId: "t", attempt: 1, endpoint: "work" }]);
  expect(first.end).toBeUndefined();
  expect(second.end).toMatchObject({ kind: "displaced" });
});

test("a call that is cancelled while its worker is cut off ends, and the others go on", () => {
  const { worker, stream } = connected();
  const [other, cancelled] = [begin(worker), begin(worker)];
  worker.accepted([1, 2]);
  worker.disconnect(stream);
  worker.execution(2)?.abort("cancelled");
  pass(worker, 8);
  expect(cancelled.end).toEqual({ kind: "aborted", reason: "cancelled" });
  expect(other.end).toBeUndefined();
  const held = [1, 2].map((id) => ({ id, taskId: "t", attempt: 1, endpoint: "work" }));
  expect(worker.resume(held)).toEqual([1]);
});

/** A call that its worker counts, and that may go on for ten seconds after its grace period of one. */
const COUNTED = { isCounted: true, abortGraceMs: 10_000 };

test.each([
  { reason: "timeout", seconds: 1 + 10 + 5 },
  // Its own grace period is longer.
  { reason: "caller_gone", seconds: 10 + 10 + 5 },
] as const)("a worker has $seconds s to end a call that is counted, after $reason", (aborted) => {
  const { worker } = connected();
  const other = begin(worker);
  begin(worker, COUNTED);
  worker.accepted([1, 2]);
  worker.execution(2)?.abort(aborted.reason);
  pass(worker, aborted.seconds - 1);
  expect([other.end, worker.ended]).toEqual([undefined, false]);
  pass(worker, 2);
  expect(worker.ended).toBe(true);
});

test("a worker has as long to end a call that is counted and was adopted", () => {
  const held = { id: 1, taskId: "t", attempt: 1, endpoint: "work" };
  const { worker } = connected({ held: [held] });
  worker.adopt({ ...held, ...COUNTED }, 60_000, { onEnd: () => {} });
  worker.execution(1)?.abort("timeout");
  pass(worker, 15);
  expect(worker.ended).toBe(false);
  pass(worker, 2);
  expect(worker.ended).toBe(true);
});

test("acknowledgements of a moment are one message", () => {
  const { worker, sent } = connected();
  begin(worker);
  begin(worker);
  worker.finish({ id: 1, result: "1" });
  worker.finish({ id: 2, result: "2" });
  vi.advanceTimersByTime(100);
  expect(sent.filter(({ type }) => type === "ack")).toEqual([
    { type: "ack", ids: [1, 2], stale: [] },
  ]);
});
