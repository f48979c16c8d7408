import { deserialize, serialize } from "node:v8";
import { describe, expect, test } from "vitest";
import { readWorkerMessage } from "../../src/pool/check.ts";
import { unpackPayload } from "../../src/protocol/messages.ts";

/** As the node has it from a worker. */
const read = (message: unknown) => readWorkerMessage(deserialize(serialize(message)));

const junk = new Uint8Array(10);
const ENDLESS = new Array(2 ** 32 - 1);

const endpoint = {
  name: "go",
  kind: "api",
  input: { type: "object", junk: [null, true] },
  output: {},
  files: {},
  retries: { max: 0, backoffMs: 0 },
  timeoutMs: 1,
  concurrency: 1,
  retentionMs: 1,
  queueLimit: 1,
  priority: 0,
};
const metric = { name: "size", kind: "histogram", help: "Sizes", labels: ["a"], buckets: [1] };
const manifest = { name: "x", endpoints: [endpoint], metrics: [metric] };
const change = { metric: "size", labels: ["b"], value: 1, counts: [1, 0] };
const failure = { code: "internal", reason: "CALL_FAILED", message: "no" };

describe("a message of a worker", () => {
  test.each([
    { type: "ready", manifest },
    { type: "refused", message: "no" },
    { type: "progress", id: 1, fraction: 0.5, message: "half" },
    { type: "log", id: 1, level: "info", message: "hello" },
    { type: "log", id: 1, level: "info", message: "hello", fieldsJson: "{}" },
    { type: "metrics", changes: [change], dropped: [{ metric: "size", events: 1 }] },
    {
      type: "metrics",
      changes: [{ metric: "n", endpoint: "go", labels: [], value: 1 }],
      dropped: [],
    },
    { type: "pong", sequence: 1 },
    { type: "results", results: [{ id: 1, result: { json: "1", files: [] } }] },
    {
      type: "results",
      results: [
        { id: 1, result: { json: "0", files: [{ contentType: "a/b", data: junk }] } },
        { id: 2, result: { json: "0", files: [{ contentType: "a/b", filename: "f", size: 5 }] } },
        { id: 3, result: { json: "", files: [], text: { contentType: "a/b", size: 5 } } },
        { id: 4, failure: { ...failure, stack: "at", violations: [{ path: "", message: "no" }] } },
      ],
    },
  ])("is read as it was sent: $type (%#)", (message) => {
    expect(read(message)).toEqual(message);
  });

  test("is read without members that the protocol does not have", () => {
    const result = { json: "0", files: [{ contentType: "a/b", data: junk }] };
    const facts = { contentType: "a/b", size: 1 };
    for (const [message, forged] of [
      [
        { type: "pong", sequence: 1 },
        { type: "pong", sequence: 1, junk },
      ],
      [
        { type: "metrics", changes: [change], dropped: [{ metric: "size", events: 1 }] },
        {
          type: "metrics",
          changes: [{ ...change, junk }],
          junk,
          dropped: [{ metric: "size", events: 1, junk }],
        },
      ],
      [
        { type: "results", results: [{ id: 1, result: { json: "", files: [], text: facts } }] },
        {
          type: "results",
          results: [
            {
              id: 1,
              failure: junk,
              junk,
              result: { json: "", files: [], text: { ...facts, junk }, junk },
            },
          ],
        },
      ],
      [
        { type: "results", results: [{ id: 1, result }] },
        { type: "results", results: [{ id: 1, result: { ...result, junk } }] },
      ],
      [
        { type: "results", results: [{ id: 1, failure }] },
        { type: "results", results: [{ id: 1, failure: { ...failure, junk } }] },
      ],
    ]) {
      expect(read(forged)).toEqual(message);
    }
  });

  test("is read with bytes of its own, which keep nothing else of the frame", () => {
    const files = [{ contentType: "a/b", data: junk }];
    const message = read({ type: "results", results: [{ id: 1, result: { json: "0", files } }] });
    const [one] = message?.type === "results" ? message.results : [];
    const [file] = one && "result" in one ? unpackPayload(one.result).files : [];
    expect(file && "data" in file && file.data.buffer.byteLength).toBe(junk.length);
  });

  const lists: readonly (readonly [where: string, message: (list: unknown[]) => unknown])[] = [
    ["results", (results) => ({ type: "results", results })],
    ["files", (files) => result({ json: "0", files })],
    ["violations", (violations) => failed({ ...failure, violations })],
    ["changes", (changes) => ({ type: "metrics", changes, dropped: [] })],
    ["dropped", (dropped) => ({ type: "metrics", changes: [], dropped })],
    ["labels", (labels) => counted({ ...change, labels })],
    ["counts", (counts) => counted({ ...change, counts })],
    ["endpoints", (endpoints) => ({ type: "ready", manifest: { name: "x", endpoints } })],
    ["metrics", (metrics) => ({ type: "ready", manifest: { ...manifest, metrics } })],
    ["label names", (labels) => declared({ ...metric, labels })],
    ["buckets", (buckets) => declared({ ...metric, buckets })],
    ["a schema", (list) => described({ ...endpoint, input: { enum: list } })],
  ];
  const result = (payload: object) => ({ type: "results", results: [{ id: 1, result: payload }] });
  const failed = (fault: object) => ({ type: "results", results: [{ id: 1, failure: fault }] });
  const counted = (one: object) => ({ type: "metrics", changes: [one], dropped: [] });
  const declared = (one: object) => ({ type: "ready", manifest: { ...manifest, metrics: [one] } });
  const described = (one: object) => ({ type: "ready", manifest: { name: "x", endpoints: [one] } });

  test.each(lists)("is none with a hole in its %s", (_, message) => {
    expect(read(message(new Array(1)))).toBeUndefined();
    expect(read(message(new Array(2)))).toBeUndefined();
  });

  test.each(lists)("is none with endless %s, which nobody walks", (_, message) => {
    const begunMs = performance.now();
    expect(read(message(ENDLESS))).toBeUndefined();
    expect(performance.now() - begunMs).toBeLessThan(1_000);
  });

  test.each([
    ["a name that is no text", { ...metric, name: 1n }],
    ["a label that is no text", { ...metric, labels: [1n] }],
    ["a bucket that has no text", { ...metric, buckets: [{ toString: 1, valueOf: 1 }] }],
  ])("is none with %s of a metric, and reading it throws nothing", (_, one) => {
    expect(read(declared(one))).toBeUndefined();
  });

  test("is none where one value stands in more places than could be copied", () => {
    let value: unknown = "x";
    for (let depth = 0; depth < 40; depth += 1) {
      value = [value, value];
    }
    expect(read(described({ ...endpoint, input: { value } }))).toBeUndefined();
    const long = { text: "x".repeat(1_000_000) };
    expect(read(described({ ...endpoint, input: { e: Array(9).fill(long) } }))).toBeUndefined();
  });

  test.each([
    ["contains itself", Object.assign([], { 0: null })],
    ["is a map", new Map()],
    ["is bytes", new Uint8Array(1)],
    ["is a large integer", 1n],
  ])("is none with a schema in which something %s", (what, value) => {
    if (what === "contains itself") {
      (value as unknown[])[0] = value;
    }
    expect(read(described({ ...endpoint, input: { value } }))).toBeUndefined();
  });

  test("is none with a file that should have come on disk", () => {
    const data = new Uint8Array(256 * 1024 + 1);
    expect(read(result({ json: "0", files: [{ contentType: "a/b", data }] }))).toBeUndefined();
  });
});
