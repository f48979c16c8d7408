import { createContextKey } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallValues } from "../../../../src/server/rpc/engine/call-context.ts";

test("the values of a call are those that were set last, or the defaults of their keys", () => {
  const [name, count] = [createContextKey("nobody"), createContextKey<number | undefined>(7)];
  const values = new CallValues();
  expect([values.get(name), values.get(count)]).toEqual(["nobody", 7]);
  values.set(name, "somebody").set(count, undefined).set(name, "somebody else");
  expect([values.get(name), values.get(count)]).toEqual(["somebody else", undefined]);
  values.delete(name).delete(name);
  expect([values.get(name), values.get(count)]).toEqual(["nobody", undefined]);
});
