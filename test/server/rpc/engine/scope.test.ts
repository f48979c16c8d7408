import { getEventListeners } from "node:events";
import { Code } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { Scope } from "../../../../src/server/rpc/engine/call-context.ts";

it("ends a call with a limit of time when its caller goes, with the caller's reason", () => {
  const caller = new AbortController();
  using scope = new Scope(caller.signal, 60_000);
  expect(scope.signal.aborted).toBe(false);
  caller.abort(new Error("gone"));
  expect(scope.signal.reason).toBe(caller.signal.reason);
  expect(scope.failure(scope.signal.reason).code).toBe(Code.Canceled);
});

it("has ended already for a caller who has gone", () => {
  using scope = new Scope(AbortSignal.abort(), 60_000);
  expect(scope.signal.aborted).toBe(true);
});

it("leaves nothing behind at a caller who makes one call after the other", () => {
  const caller = new AbortController();
  for (let call = 0; call < 3; call += 1) {
    using scope = new Scope(caller.signal, 60_000);
    scope.signal.addEventListener("abort", () => {});
  }
  expect(getEventListeners(caller.signal, "abort")).toEqual([]);
});
