import { describe, expect, test } from "vitest";
import { readWorkerMessage } from "../../../src/pool/checks/check.ts";
import { readManifest } from "../../../src/pool/checks/check-manifest.ts";
import { OutgoingAttachments } from "../../../src/protocol/attachments.ts";
import { encodeFrame } from "../../../src/protocol/codec.ts";
import { FrameReader } from "../../../src/protocol/frames.ts";
import { unpackPayload, type WorkerMessage } from "../../../src/protocol/messages.ts";
import { frame } from "../../fixtures/frames.ts";
import { threadTimer } from "../../thread-time.ts";

/** What the node has of these bytes from a worker. */
function readFrame(bytes: Buffer): WorkerMessage | undefined {
  let message: WorkerMessage | undefined;
  const reader = new FrameReader({
    maxBytes: 100_000_000,
    onMessage(header, attachments) {
      const received = readWorkerMessage(header, attachments);
      message = attachments.fault === undefined ? received : undefined;
    },
    onBroken: (reason) => expect.unreachable(reason),
  });
  reader.push(bytes);
  return message;
}

/** As the node has it from a worker that sends what it should not, in a frame that is in order. */
function read(message: unknown): WorkerMessage | undefined {
  const attachments = new OutgoingAttachments();
  const text = JSON.stringify(message, (name, value) => {
    if (name === "manifest" || name === "response") {
      return attachments.add(JSON.stringify(value));
    }
    return value instanceof Uint8Array ? attachments.add(value) : value;
  });
  return readFrame(encodeFrame(JSON.parse(text), attachments));
}

const bytes = new Uint8Array(10);
const junk = ["junk", {}];

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
    { type: "usage", id: 1, units: { prompt_tokens: 12, pages: 0.5 } },
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
      type: "chunks",
      chunks: [
        { id: 1, sequence: 1, data: '"a"' },
        { id: 1, sequence: 2, data: bytes },
      ],
    },
    {
      type: "results",
      results: [
        { id: 1, result: { json: "0", files: [{ contentType: "a/b", data: bytes }] } },
        { id: 2, result: { json: "0", files: [{ contentType: "a/b", filename: "f", size: 5 }] } },
        { id: 3, result: { json: "", files: [], text: { contentType: "a/b", size: 5 } } },
        { id: 4, failure: { ...failure, stack: "at", violations: [{ path: "", message: "no" }] } },
        { id: 5, failure: { ...failure, status: 422 } },
      ],
    },
  ])("is read as it was sent: $type (%#)", (message) => {
    expect(read(message)).toEqual(message);
  });

  test("is read without members that the protocol does not have", () => {
    const result = { json: "0", files: [{ contentType: "a/b", data: bytes }] };
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

  test.each([
    ["no id", { sequence: 1, data: "1" }],
    ["a sequence of 0", { id: 1, sequence: 0, data: "1" }],
    ["half a sequence", { id: 1, sequence: 1.5, data: "1" }],
    ["no data", { id: 1, sequence: 1 }],
    ["data that is neither text nor bytes", { id: 1, sequence: 1, data: 1 }],
    ["more bytes than a piece has", { id: 1, sequence: 1, data: new Uint8Array(768 * 1024 + 1) }],
  ])("is none with a chunk with %s", (_, chunk) => {
    expect(read({ type: "chunks", chunks: [chunk] })).toBeUndefined();
  });

  const head = (response: unknown) => {
    const chunk = { id: 1, sequence: 1, data: "1", response };
    return (
      read({ type: "chunks", chunks: [chunk] }) ??
      read({ type: "results", results: [{ id: 1, result: { json: "1", files: [], response } }] })
    );
  };

  test.each([
    ["a status below 200", { status: 101, headers: [] }],
    ["a status that HTTP does not have", { status: 600, headers: [] }],
    ["half a status", { status: 200.5, headers: [] }],
    ["a status in words", { status: "200", headers: [] }],
    ["no headers", { status: 200 }],
    ["headers as an object", { headers: { a: "b" } }],
    ["a header without a value", { headers: [["a"]] }],
    ["a header with two values", { headers: [["a", "b", "c"]] }],
    ["a value that is no text", { headers: [["a", 1]] }],
    ["a line break in a value", { headers: [["a", "b\r\nset-cookie: c=d"]] }],
    ["a NUL in a value", { headers: [["a", "\0"]] }],
    ["letters that HTTP cannot carry", { headers: [["a", "\u0100"]] }],
    ["a space in a name", { headers: [["a b", "c"]] }],
    ["a capital in a name", { headers: [["A", "b"]] }],
    ["no name", { headers: [["", "b"]] }],
    ["101 headers", { headers: Array(101).fill(["a", "b"]) }],
    ["more than 16 KiB", { headers: [["a", "b".repeat(16 * 1024)]] }],
  ])("is none that says %s of an answer", (_, said) => {
    expect(head(said)).toBeUndefined();
  });

  test.each([
    ["a negative amount", { tokens: -1 }],
    ["an amount that is not finite", { tokens: Number.POSITIVE_INFINITY }],
    ["more than a call may use", { tokens: 2e12 }],
    ["a text", { tokens: "1" }],
    ["a name with a space", { "my tokens": 1 }],
    ["what the platform counts", { run_seconds: 1 }],
    ["17 units", Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`unit_${at}`, 1]))],
    ["no units", undefined],
  ])("is none that reports %s as used", (_, units) => {
    expect(read({ type: "usage", id: 1, units })).toBeUndefined();
  });

  test("says the status and the headers of an answer, and nothing else of it", () => {
    const response = { status: 418, headers: [["x-model", "ü"]] };
    const results = [{ id: 1, result: { json: "1", files: [], response } }];
    const sent = { ...response, junk };
    expect(
      read({
        type: "results",
        results: [{ id: 1, result: { json: "1", files: [], response: sent } }],
      }),
    ).toEqual({ type: "results", results });
    const chunks = [{ id: 1, sequence: 1, data: '"a"', response }];
    expect(read({ type: "chunks", chunks })).toEqual({ type: "chunks", chunks });
    // It stands before the first piece, or nowhere.
    const late = chunks.map((chunk) => ({ ...chunk, sequence: 2 }));
    expect(read({ type: "chunks", chunks: late })).toBeUndefined();
  });

  test("has a chunk without members that the protocol does not have, with bytes of its own", () => {
    const chunk = { id: 1, sequence: 1, data: bytes };
    const message = read({ type: "chunks", junk, chunks: [{ ...chunk, junk }] });
    expect(message).toEqual({ type: "chunks", chunks: [chunk] });
    const data = message?.type === "chunks" && message.chunks[0]?.data;
    expect(data instanceof Uint8Array && data.buffer.byteLength).toBe(bytes.length);
  });

  test("is none with more chunks than a message has", () => {
    const chunk = { id: 1, sequence: 1, data: "1" };
    expect(read({ type: "chunks", chunks: Array(32).fill(chunk) })).toBeDefined();
    expect(read({ type: "chunks", chunks: Array(33).fill(chunk) })).toBeUndefined();
  });

  test("is read with bytes of its own, which keep nothing else of the frame", () => {
    const files = [{ contentType: "a/b", data: bytes }];
    const message = read({ type: "results", results: [{ id: 1, result: { json: "0", files } }] });
    const [one] = message?.type === "results" ? message.results : [];
    const [file] = one && "result" in one ? unpackPayload(one.result).files : [];
    expect(file && "data" in file && file.data.buffer.byteLength).toBe(bytes.length);
  });

  const lists: readonly (readonly [where: string, message: (list: unknown[]) => unknown])[] = [
    ["results", (results) => ({ type: "results", results })],
    ["files", (files) => result({ json: "0", files })],
    ["violations", (violations) => failed({ ...failure, violations })],
    ["chunks", (chunks) => ({ type: "chunks", chunks })],
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

  test.each([0, 200, 399, 600, 422.5, "422", null])("is none with %j as its status", (status) => {
    expect(read(failed({ ...failure, status }))).toBeUndefined();
  });

  test.each(lists)("is none with something strange in its %s", (_, message) => {
    for (const strange of [null, 1, "x", [], {}, { __proto__: 1 }, true]) {
      const list = [strange, strange];
      const received = read(message(list));
      // What is no list of texts or numbers of its kind is refused; a schema may have anything.
      expect(
        received === undefined || JSON.stringify(received).includes(JSON.stringify(list)),
      ).toBe(true);
    }
  });

  test.each(lists)("is none with no list for its %s", (where, message) => {
    if (where !== "a schema") {
      for (const strange of [null, {}, "x", { length: 1 }]) {
        expect(read(message(strange as never))).toBeUndefined();
      }
    }
  });

  test.each(lists)("is none with very long %s", (_, message) => {
    const spentMs = threadTimer();
    expect(read(message(Array(100_000).fill("x")))).toBeUndefined();
    expect(spentMs()).toBeLessThan(1_000);
  });

  test.each([
    ["a name that is no text", { ...metric, name: 1 }],
    ["a label that is no text", { ...metric, labels: [1] }],
    ["a bucket that has no text", { ...metric, buckets: [{ toString: 1, valueOf: 1 }] }],
  ])("is none with %s of a metric, and reading it throws nothing", (_, one) => {
    expect(read(declared(one))).toBeUndefined();
  });

  test("is none with more values in a manifest than any has, or deeper ones", () => {
    const input = { enum: Array(200_000).fill(1) };
    expect(read(described({ ...endpoint, input }))).toBeUndefined();
    const deep = JSON.parse("[".repeat(1_000) + "]".repeat(1_000));
    expect(read(described({ ...endpoint, input: { deep } }))).toBeUndefined();
    const commas = { text: ",[{".repeat(200_000) + '"\\"'.repeat(10) };
    expect(read(described({ ...endpoint, input: commas }))).toMatchObject({ type: "ready" });
  });

  test("is none with a manifest or a failure that is no JSON", () => {
    for (const text of ["{]", "", '"', '"\\', "]]", "undefined"]) {
      const bytes = Buffer.from(text);
      const reference = { $: [0, bytes.length] };
      expect(readFrame(frame({ type: "ready", manifest: reference }, bytes))).toBeUndefined();
      const results = [{ id: 1, failure: reference }];
      expect(readFrame(frame({ type: "results", results }, bytes))).toBeUndefined();
    }
  });

  test("is none with a log line that is too long, in the header or beside it", () => {
    const log = { type: "log", id: 1, level: "info", message: "x".repeat(8_193) };
    expect(read(log)).toBeUndefined();
    expect(readFrame(frame(log))).toBeUndefined();
    const fieldsJson = `{"a":"${"x".repeat(8_193)}"}`;
    expect(read({ ...log, message: "x", fieldsJson })).toBeUndefined();
  });

  test("says which versions of the protocol its host speaks, and nothing longer", () => {
    const hello = { type: "hello", protocols: [2], language: "python", version: "3.11", sdk: "1" };
    const host = "the host of python 3.11 (1)";
    expect(read(hello)).toEqual({ type: "hello", protocols: [2], host });
    expect(read({ ...hello, protocols: ["2"] })).toBeUndefined();
    expect(read({ ...hello, protocols: Array(17).fill(2) })).toBeUndefined();
    expect(read({ ...hello, language: "x".repeat(101) })).toBeUndefined();
    expect(read({ ...hello, sdk: 1 })).toBeUndefined();
  });

  test("may have a failure in its header", () => {
    const results = [{ id: 1, failure }];
    expect(readFrame(frame({ type: "results", results }))).toEqual({ type: "results", results });
  });

  test("has the text of a result as it came, JSON or not: nobody parses it here", () => {
    const text = Buffer.from("{] ".repeat(100));
    const results = [{ id: 1, result: { $: [0, text.length] } }];
    expect(readFrame(frame({ type: "results", results }, text))).toEqual({
      type: "results",
      results: [{ id: 1, result: text.toString() }],
    });
  });

  test("is none with a file that should have come on disk", () => {
    const data = new Uint8Array(256 * 1024 + 1);
    expect(read(result({ json: "0", files: [{ contentType: "a/b", data }] }))).toBeUndefined();
  });
});

describe("a manifest of an index", () => {
  const queue = {
    ...{ timeoutMs: 1, headers: ["x-tenant", "*"], retentionMs: 1, queueLimit: 1, priority: 0 },
    retries: { max: 0, backoffMs: 0 },
  };
  test.each<[path: string, given: unknown, valid: boolean]>([
    ["/", queue, true],
    [`/${"a".repeat(63)}`, queue, false],
    ["/", true, false],
    ["/", { ...queue, timeoutMs: 0 }, false],
    ["/", { ...queue, headers: ["a b"] }, false],
    ["/", { ...queue, headers: Array.from({ length: 101 }, () => "a") }, false],
    ["/", { ...queue, headers: undefined }, false],
    ["/", { ...queue, retries: undefined }, false],
    ["/", { ...queue, retries: { max: "1", backoffMs: 0 } }, false],
    ["/", { ...queue, queueLimit: 1.5 }, false],
  ])("with a server at %s whose requests are tasks, by %j, is valid: %s", (path, given, valid) => {
    const one = { ...manifest, mounts: [{ path, timeoutMs: 1, concurrency: 1, queue: given }] };
    expect(readManifest(one)).toEqual(valid ? one : undefined);
  });

  test.each([
    ["pieces of JSON", { stream: { pieces: "json" } }, true],
    ["pieces of text", { stream: { pieces: "text" } }, true],
    ["pieces of a file", { stream: { pieces: "bytes" }, outputFile: {} }, true],
    ["bytes of no file", { stream: { pieces: "bytes" } }, false],
    ["pieces of text that are a file", { stream: { pieces: "text" }, outputFile: {} }, false],
    ["other pieces", { stream: { pieces: "rows" } }, false],
    ["a stream that is no object", { stream: "text" }, false],
  ])("with %s", (_, streamed, valid) => {
    const one = { ...manifest, endpoints: [{ ...endpoint, ...streamed }] };
    expect(readManifest(one)).toEqual(valid ? one : undefined);
  });

  test.each([
    ["a path", { route: "/v1/predict-all" }, true],
    ["a path that is none", { route: "v1" }, false],
    ["a path with a verb", { route: "/v1/model:predict" }, true],
    ["a path with letters of other alphabets", { route: "/größe/尺寸" }, true],
    ["the root as a path", { route: "/" }, true],
    ["a path with a parameter", { route: "/v1/{name}" }, false],
    ["a path with a query", { route: "/v1?x" }, false],
    ["a path with a space", { route: "/a b" }, true],
    ["a path with a percent sign", { route: "/a%20b" }, true],
    ["a path with an empty segment", { route: "/v1//x" }, true],
    ["a path that begins with two slashes", { route: "//v1" }, false],
    ["a path with a slash at its end", { route: "/v1/" }, false],
    ["a path with a backslash", { route: "/v1\\x" }, false],
    ["a path with a line break", { route: "/v1\u2028x" }, false],
    ["a path with half of a character", { route: "/v1\ud800" }, false],
    ["a long path", { route: `/${"x".repeat(300)}` }, false],
    ["that it is idempotent", { idempotent: true }, true],
    ["that it is idempotent, perhaps", { idempotent: "yes" }, false],
    ["an abort grace", { abortGraceMs: 300 }, true],
    ["an abort grace of nothing", { abortGraceMs: 0 }, false],
    ["an abort grace of more than a day", { abortGraceMs: 86_400_001 }, false],
    ["a root argument", { rootArgument: "text" }, true],
    ["arrays of numbers", { arrays: ["text"] }, true],
    ["arrays that are none of its arguments", { arrays: ["toString"] }, false],
    ["arrays by no names", { arrays: "text" }, false],
    ["a root argument that is none of its arguments", { rootArgument: "toString" }, false],
    ["a placement", { requires: { gpu: "*" }, place: "remote" }, true],
    ["a place that is none", { place: "there" }, false],
    ["a label that is none", { requires: { "no spaces": "*" } }, false],
    ["a label without a value", { requires: { gpu: null } }, false],
    ["labels in a list", { requires: ["gpu"] }, false],
    [
      "more labels than a machine has",
      {
        requires: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`l${index}`, "*"])),
      },
      false,
    ],
    ["a root argument without a name", { rootArgument: 1 }, false],
  ])("with %s of an endpoint", (_, given, valid) => {
    const input = { type: "object", properties: { text: {} } };
    const one = { ...manifest, endpoints: [{ ...endpoint, input, ...given }] };
    expect(readManifest(one)).toEqual(valid ? one : undefined);
  });

  test.each([
    ["a description for BentoML's clients", { bentoml: { routes: [] } }, true],
    ["one that is no object", { bentoml: "x" }, false],
    ["a list of others", [], false],
  ])("with %s", (_, compat, valid) => {
    expect(readManifest({ ...manifest, compat })).toEqual(
      valid ? { ...manifest, compat } : undefined,
    );
  });

  test.each([
    ["origins", { origins: ["https://a.example", "*"] }, true],
    [
      "all that it may say",
      {
        origins: [],
        originPattern: "https://.*\\.a\\.example",
        credentials: true,
        methods: ["POST"],
        headers: ["*"],
        exposedHeaders: ["X-Model"],
        maxAgeSeconds: 600,
      },
      true,
    ],
    ["no origins", { headers: ["*"] }, false],
    ["an origin with a line break", { origins: ["https://a\r\nx: y"] }, false],
    ["a header with a line break", { origins: [], headers: ["x\r\ny"] }, false],
    ["a method of two words", { origins: [], methods: ["GET, POST"] }, false],
    ["headers that are no list", { origins: [], exposedHeaders: "X-Model" }, false],
    ["too many origins", { origins: Array(101).fill("https://a.example") }, false],
    ["a pattern that is none", { origins: [], originPattern: "(" }, false],
    ["a pattern of Python alone", { origins: [], originPattern: "(?P<a>x)" }, false],
    ["a long pattern", { origins: [], originPattern: "a".repeat(1_001) }, false],
    ["an age of more than a day", { origins: [], maxAgeSeconds: 86_401 }, false],
    ["credentials that are a text", { origins: [], credentials: "yes" }, false],
  ])("with %s for pages of other sites", (_, cors, valid) => {
    expect(readManifest({ ...manifest, cors })).toEqual(valid ? { ...manifest, cors } : undefined);
  });

  test.each([
    [1, true],
    [256, true],
    [0, false],
    [257, false],
    [1.5, false],
    ["2", false],
  ])("with %j workers", (workers, valid) => {
    const declared = { ...manifest, workers };
    expect(readManifest(declared)).toEqual(valid ? declared : undefined);
  });

  test.each([
    [{ gpus: 0.5 }, true],
    [{ gpus: 0.07, gpuMemoryMib: 1 }, true],
    [{ gpus: 16 }, true],
    [{ gpus: 17 }, false],
    [{ gpus: 1.5 }, false],
    [{ gpus: 0.001 }, false],
    [{ gpus: -0.5 }, false],
    [{ gpus: "0.5" }, false],
  ])("with %j", (asked, valid) => {
    const declared = { ...manifest, ...asked };
    expect(readManifest(declared)).toEqual(valid ? declared : undefined);
  });

  test("is read within the bounds that one of a worker has", () => {
    expect(readManifest(manifest)).toEqual(manifest);
    expect(readManifest({ name: "x" })).toBeUndefined();
    const input = { enum: Array(200_000).fill(1) };
    expect(readManifest({ ...manifest, endpoints: [{ ...endpoint, input }] })).toBeUndefined();
    const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
    expect(
      readManifest({ ...manifest, endpoints: [{ ...endpoint, input: { deep } }] }),
    ).toBeUndefined();
  });
});
