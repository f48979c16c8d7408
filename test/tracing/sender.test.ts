import { expect, it } from "vitest";
import { OtlpSender } from "../../src/tracing/otlp/sender.ts";

it("spans that cannot be written down are told of, and end nothing", async () => {
  const failed: [number, string][] = [];
  const sender = new OtlpSender({
    url: "http://127.0.0.1:1/v1/traces",
    headers: {},
    onFailed: (spans, reason) => void failed.push([spans, reason]),
  });
  const broken = {
    get resource(): never {
      throw new Error("it has no resource");
    },
  };
  const done = Promise.withResolvers<number>();
  sender.export([broken as never], ({ code }) => done.resolve(code));
  await sender.forceFlush();
  expect(failed).toEqual([[1, "it has no resource"]]);
  expect(await done.promise).toBe(0);
});
