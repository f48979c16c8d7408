import { describe, expect, it } from "vitest";
import { LogThrottle } from "../../src/time/log-throttle.ts";
import { loggedTrace, readTrace, traceHeaders } from "../../src/tracing/context.ts";
import { CALLER, CALLER_SPAN, TRACED } from "./traced.ts";

const PARENT = TRACED.traceparent;

function read(traceparent: string, tracestate?: string): string | undefined {
  return readTrace(new Headers({ traceparent, ...(tracestate !== undefined && { tracestate }) }));
}

describe("the trace of a request", () => {
  it("is undefined without a traceparent", () => {
    expect(readTrace(new Headers({ tracestate: "a=b" }))).toBeUndefined();
  });

  it("is the traceparent with its tracestate", () => {
    expect(read(PARENT)).toBe(PARENT);
    expect(read(PARENT, "a=b,c=d")).toBe(`${PARENT} a=b,c=d`);
  });

  it.each([
    ["an upper-case id", PARENT.toUpperCase()],
    ["no trace", `00-${"0".repeat(32)}-${CALLER_SPAN}-01`],
    ["no parent", `00-${CALLER}-${"0".repeat(16)}-01`],
    ["a version that cannot be", `ff-${CALLER}-${CALLER_SPAN}-01`],
    ["more than its version has", `${PARENT}-00`],
    ["two of them", `${PARENT}, ${PARENT}`],
    ["something else", "x".repeat(10_000)],
  ])("is as good as absent with %s", (_, traceparent) => {
    expect(read(traceparent)).toBeUndefined();
  });

  it("keeps of a later version what is known of it", () => {
    expect(read(`01-${CALLER}-${CALLER_SPAN}-03-more`)).toBe(`00-${CALLER}-${CALLER_SPAN}-01`);
    expect(read(`01-${CALLER}-${CALLER_SPAN}-02`)).toBe(`00-${CALLER}-${CALLER_SPAN}-00`);
  });

  it("leaves out a tracestate that cannot be handed on", () => {
    expect(read(PARENT, `a=${"b".repeat(511)}`)).toBe(PARENT);
    expect(read(PARENT, "a=\u00e9")).toBe(PARENT);
    expect(read(PARENT, "")).toBe(PARENT);
  });

  it("is two headers again, and an id in the log", () => {
    expect(traceHeaders(PARENT)).toEqual([PARENT, ""]);
    expect(traceHeaders(`${PARENT} a=b, c=d`)).toEqual([PARENT, "a=b, c=d"]);
    expect(loggedTrace(`${PARENT} a=b`)).toEqual({ traceId: CALLER });
    expect(loggedTrace(undefined)).toEqual({});
  });
});

it("a line that recurs is logged once a minute, with how often it was not", () => {
  const lines: [object, string][] = [];
  let nowMs = 0;
  const seldom = new LogThrottle(
    (fields, message) => lines.push([fields, message]),
    () => nowMs,
  );
  for (let second = 0; second <= 60; second++) {
    nowMs = second * 1_000;
    seldom.say({ second }, "again");
    if (second === 30) {
      seldom.say({ second }, "other");
    }
  }
  expect(lines).toEqual([
    [{ second: 0 }, "again"],
    [{ second: 30 }, "other"],
    [{ second: 60, unsaid: 59 }, "again"],
  ]);
});
