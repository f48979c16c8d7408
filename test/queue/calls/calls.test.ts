import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { giveBack } from "../../../src/collections/bytes.ts";
import type { ExecutionEnd, ExecutionListener } from "../../../src/pool/calls/execution.ts";
import type { Pool, Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { Calls } from "../../../src/queue/calls/calls.ts";
import { onOwnTimers } from "../../own-timers.ts";

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

it("counts the bytes of arguments that are given back before the end of their call", async () => {
  const jsonBytes = Buffer.allocUnsafeSlow(20_000);
  const payload = { json: "", jsonBytes, files: [] };
  const listeners: ExecutionListener[] = [];
  const slot = {
    execute: (_: unknown, listener: ExecutionListener) => {
      listeners.push(listener);
      return { abort() {} };
    },
    release() {},
  };
  const used: unknown[] = [];
  const calls = new Calls({
    pool: { reserve: () => slot as unknown as Slot } as unknown as Pool,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    newId: () => "a",
    onUsed: (use) => used.push(use),
  });
  const endpoint = { name: "work", kind: "api", timeoutMs: 1_000 } as EndpointManifest;
  const calling = calls.call(endpoint, payload, { signal: new AbortController().signal });
  listeners[0]?.onAbort?.("timeout");
  await expect(calling).rejects.toMatchObject({ reason: "CALL_TIMEOUT" });
  giveBack(jsonBytes);
  listeners[0]?.onEnd({ kind: "aborted", reason: "timeout" });
  expect(used).toMatchObject([{ bytesIn: 20_000, bytesOut: 0 }]);
});

describe("the place of a key", () => {
  const payload = { json: "{}", files: [] };
  const endpoint = {
    ...{ name: "work", kind: "api", timeoutMs: 1_000, byKey: { concurrency: 1 } },
  } as unknown as EndpointManifest;

  /** Calls whose executions a test ends. */
  function limited() {
    const listeners: ExecutionListener[] = [];
    const slot = {
      execute: (_: unknown, listener: ExecutionListener) => {
        listeners.push(listener);
        return { abort() {}, more() {} };
      },
      release() {},
    };
    const calls = new Calls({
      pool: { reserve: () => slot as unknown as Slot } as unknown as Pool,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      newId: () => "a",
    });
    const from = { signal: new AbortController().signal, key: "ada" };
    return {
      listeners,
      call: () => calls.call(endpoint, payload, from),
      stream: () => calls.stream(endpoint, payload, from),
    };
  }

  it("is taken while the function of a call goes on after its timeout", async () => {
    const { listeners, call } = limited();
    const timedOut = call();
    listeners[0]?.onAbort?.("timeout");
    await expect(timedOut).rejects.toMatchObject({ reason: "CALL_TIMEOUT" });
    await expect(call()).rejects.toMatchObject({ reason: "KEY_LIMITED" });
    listeners[0]?.onEnd({ kind: "aborted", reason: "timeout" });
    const next = call();
    listeners[1]?.onEnd(RESULT);
    expect(await next).toEqual({ json: "1", files: [] });
  });

  it("is taken while the function of a stream goes on that its reader has left", async () => {
    const { listeners, call, stream } = limited();
    const pieces = stream();
    const first = pieces.next();
    await vi.waitFor(() => expect(listeners).toHaveLength(1));
    listeners[0]?.onChunk?.({ json: "1" } as never, 1);
    await first;
    await pieces.return();
    await expect(call()).rejects.toMatchObject({ reason: "KEY_LIMITED" });
    listeners[0]?.onEnd({ kind: "aborted", reason: "caller_gone" });
    await vi.waitFor(async () => {
      const next = call();
      listeners[1]?.onEnd(RESULT);
      expect(await next).toEqual({ json: "1", files: [] });
    });
  });

  it("goes back where no worker came in time", async () => {
    const none = new Calls({
      pool: { reserve: () => undefined, serves: () => true } as unknown as Pool,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      newId: () => "a",
    });
    const left = AbortSignal.abort();
    const from = { signal: left, key: "ada" };
    for (let tries = 0; tries < 2; tries++) {
      await expect(none.call(endpoint, payload, from)).rejects.toMatchObject({
        reason: "CALLER_GONE",
      });
    }
  });
});

describe("a call that names a worker", () => {
  const ENDPOINT = { name: "/", kind: "api", timeoutMs: 10_000 } as EndpointManifest;
  const { signal } = new AbortController();

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A pool of workers with so many free slots each. */
  function poolOf(free: Record<string, number>) {
    const calls = new Calls({
      pool: {
        joined: { isStarting: () => false },
        serves: (_: unknown, id?: string) => id === undefined || id in free,
        reserve: (_: unknown, asked?: string) => {
          const id = Object.keys(free).find(
            (each) => (free[each] ?? 0) > 0 && (asked === undefined || asked === each),
          );
          if (id === undefined) {
            return undefined;
          }
          free[id] = (free[id] ?? 0) - 1;
          const ranIn = { worker: id };
          return { ranIn, agent: {}, release: () => (free[id] = (free[id] ?? 0) + 1) };
        },
      } as unknown as Pool,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      newId: () => "a",
    });
    const hold = (worker?: string) => calls.hold(ENDPOINT, { signal, worker });
    return { calls, hold };
  }

  it("runs in that one", async () => {
    const { hold } = poolOf({ a: 3, b: 3 });
    for (const name of ["b", "a", "b"]) {
      expect((await hold(name)).ranIn.worker).toBe(name);
    }
  });

  it("runs in any where that one is not there", async () => {
    const { hold } = poolOf({ a: 1 });
    expect((await hold("gone")).ranIn.worker).toBe("a");
  });

  it(
    "waits for a slot of it, and lets others have those of the others",
    onOwnTimers(async (left) => {
      const { hold } = poolOf({ a: 2, b: 1 });
      const first = await hold("b");
      const waiting = hold("b");
      expect((await hold()).ranIn.worker).toBe("a");
      vi.advanceTimersByTime(500);
      first.release();
      expect((await waiting).ranIn.worker).toBe("b");
      expect(left()).toBe(0);
    }),
  );

  it("waits no longer than a second where another one is free", async () => {
    const { hold } = poolOf({ a: 1, b: 1 });
    await hold("b");
    const waiting = hold("b");
    vi.advanceTimersByTime(1_000);
    expect((await waiting).ranIn.worker).toBe("a");
  });

  it(
    "goes on waiting for any where none is free",
    onOwnTimers(async (left) => {
      const { hold } = poolOf({ a: 1, b: 1 });
      const [first] = [await hold("a"), await hold("b")];
      const waiting = hold("b");
      vi.advanceTimersByTime(1_000);
      first.release();
      expect((await waiting).ranIn.worker).toBe("a");
      expect(left()).toBe(0);
    }),
  );
});
