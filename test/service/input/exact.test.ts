/** What a caller sends is what the worker gets, byte for byte. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { jsonOf } from "../../../src/protocol/messages.ts";
import { ArgumentsReader, type CallInput } from "../../../src/service/input/arguments.ts";
import { ARGUMENTS_TYPE } from "../../../src/service/input/arguments-type.ts";
import { liftArguments } from "../../../src/service/input/lift.ts";
import { rewritten } from "../../../src/service/input/rewrite.ts";
import { ReaderThreads } from "../../../src/service/input/threads.ts";
import { localFiles } from "../../storage/files/local.ts";
import { endpoint } from "../manifests.ts";

const FILE = { image: { required: true, array: false } };

function readerOf(more: Partial<EndpointManifest> = {}): ArgumentsReader {
  const image = { type: "string", format: "binary" };
  const input = { type: "object", properties: { x: {}, image: more.files ? image : {} } };
  return new ArgumentsReader(endpoint({ name: "run", input, json: "python", ...more }));
}

async function read(reader: ArgumentsReader, input: CallInput, threads?: ReaderThreads) {
  return jsonOf(await reader.read(input, localFiles().api, threads));
}

const body = (text: string, contentType = "application/json"): CallInput => ({
  case: "body",
  value: { contentType, data: Buffer.from(text) },
});

async function form(parts: Readonly<Record<string, string>>): Promise<CallInput> {
  const data = new FormData();
  for (const [name, text] of Object.entries(parts)) {
    data.set(name, text);
  }
  data.set("image", new Blob(["x"], { type: "image/png" }), "x.png");
  const sent = new Response(data);
  const contentType = sent.headers.get("content-type") ?? "";
  return { case: "body", value: { contentType, data: new Uint8Array(await sent.arrayBuffer()) } };
}

const NUMBERS = [
  ...["9007199254740993", "9223372036854775808", "18446744073709551615", "-9223372036854775809"],
  ...[
    "1.0",
    "-0",
    "-0.0",
    "1e400",
    "-1E+400",
    "1e-400",
    "1E5",
    "0.1000000000000000055511151231257827",
  ],
];

describe("numbers arrive as they were sent", () => {
  it.each([...NUMBERS, "NaN", "Infinity", "-Infinity", "[NaN,1.0]"])("%s", async (number) => {
    const object = `{"x": ${number}}`;
    expect(await read(readerOf(), body(object))).toBe(object);
    expect(await read(readerOf({ rootArgument: "x" }), body(number))).toBe(`{"x":${number}}`);
    expect(await read(readerOf({ rootArgument: "x" }), body(object))).toBe(`{"x":${object}}`);
    const named = body(object, ARGUMENTS_TYPE);
    expect(await read(readerOf({ rootArgument: "x" }), named)).toBe(object);
    const files = readerOf({ files: FILE });
    const inJson = body(`{"x": ${number}, "image": "data:,x"}`);
    expect(await read(files, inJson)).toBe(`{"x":${number},"image":0}`);
    const message = Buffer.from(
      `{"endpoint":"run","tasks":[{"arguments":${object}}],"arguments":${object}}`,
    );
    expect(liftArguments(message)).toEqual({
      json: '{"endpoint":"run","tasks":[{}]}',
      own: object,
      tasks: [object],
    });
  });

  it.each(NUMBERS)("in a form: %s", async (number) => {
    const files = readerOf({ files: FILE });
    expect(await read(files, await form({ x: number }))).toBe(`{"x":${number},"image":0}`);
    expect(await read(files, await form({ x: `[${number}]` }))).toBe(`{"x":[${number}],"image":0}`);
  });

  it("in a message that is written anew as JSON", () => {
    const sent = Buffer.from('{"endpoint":"run","arguments":{"x":18446744073709551615}}');
    const { body: taken } = JSON.parse(Buffer.from(rewritten(sent, undefined)).toString());
    expect(Buffer.from(taken.data, "base64").toString()).toBe('{"x":18446744073709551615}');
  });
});

/** JSON as people and programs write it: with spaces, escapes, and numbers of any form. */
const space = fc.constantFrom("", " ", "\n\t", "\r\n ");
const { value: anyJson } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(...NUMBERS, "true", "null", '"\\ud800"', '"\\u0000\\""', '"ä☃"', '""'),
    fc.string().map((text) => JSON.stringify(text)),
    fc
      .tuple(fc.array(tie("value"), { maxLength: 4 }), space)
      .map(([all, gap]) => `[${gap}${all.join(`,${gap}`)}${gap}]`),
    fc
      .tuple(fc.array(fc.tuple(fc.string(), tie("value")), { maxLength: 4 }), space)
      .map(
        ([all, gap]) =>
          `{${gap}${all.map(([name, text]) => `${JSON.stringify(name)}${gap}:${gap}${text}`).join(",")}${gap}}`,
      ),
  ),
}));

it("any value of an argument arrives byte for byte, whichever way it comes", async () => {
  const whole = readerOf();
  const root = readerOf({ rootArgument: "x" });
  const files = readerOf({ files: FILE });
  await fc.assert(
    fc.asyncProperty(anyJson, async (text) => {
      expect(await read(whole, body(`{"x":${text}}`))).toBe(`{"x":${text}}`);
      expect(await read(root, body(text))).toBe(`{"x":${text}}`);
      // A browser's form ends lines in its own way.
      const lines = text.replaceAll(/\r?\n/g, "\r\n");
      expect(await read(files, await form({ x: `[${text}]` }))).toBe(`{"x":[${lines}],"image":0}`);
      const lifted = liftArguments(Buffer.from(`{"arguments":{"x":${text}}}`));
      expect(lifted.own).toBe(`{"x":${text}}`);
    }),
    { numRuns: 200 },
  );
});

it("large bodies arrive as they were sent, read on another thread", async () => {
  await using threads = new ReaderThreads({ onFailed: (err) => expect.unreachable(String(err)) });
  const list = `[ ${NUMBERS.join(", ").concat(", ").repeat(2_000)}NaN ]`;
  const object = `{"ä": 1, "x": ${list}}`;
  expect(await read(readerOf(), body(object), threads)).toBe(object);
  expect(await read(readerOf({ rootArgument: "x" }), body(list), threads)).toBe(`{"x":${list}}`);
});

it("a name that is given twice counts once, as the last one", async () => {
  const files = readerOf({ files: FILE });
  const sent = '{"x":1,"image":"data:,a","x":2.0,"image":"data:,b"}';
  expect(await read(files, body(sent))).toBe('{"x":2.0,"image":0}');
});

describe("a service in TypeScript", () => {
  const typed = () => readerOf({ json: undefined });

  it.each(["9007199254740993", "18446744073709551615", "[1,-9223372036854775809]", "1e400"])(
    "is refused %s, which it would get as another number",
    async (number) => {
      const attempt = (async () => read(typed(), body(`{"x":${number}}`)))();
      await expect(attempt).rejects.toMatchObject({
        reason: "ARGUMENTS_INVALID",
        violations: [{ field: "x", description: expect.stringContaining("send it as a text") }],
      });
    },
  );

  it.each([
    "9007199254740992",
    "1e300",
    '"9007199254740993"',
    "1152921504606846976",
    "1e-400",
    "9223372036854776000",
  ])("gets %s", async (number) => {
    expect(await read(typed(), body(`{"x":${number}}`))).toBe(`{"x":${number}}`);
  });

  it.each(["NaN", "[1, -Infinity]", "Infinity"])("is refused %s by its name", async (number) => {
    const attempt = (async () => read(typed(), body(`{"x":${number}}`)))();
    await expect(attempt).rejects.toMatchObject({
      reason: "BODY_MALFORMED",
      rawMessage: expect.stringMatching(/(?:NaN|Infinity) at byte \d+ is no number of JSON/),
    });
  });
});

describe("arguments that came as a Struct", () => {
  const struct = (x: number): CallInput => ({ case: "arguments", value: { x } });

  it.each([
    [-0, "-0.0"],
    [1.5, "1.5"],
    [9007199254740991, "9007199254740991"],
    [1e300, "1e+300"],
    [Number.NaN, "NaN"],
  ])("have %s as it was", async (number, text) => {
    expect(await read(readerOf(), struct(number))).toBe(`{"x":${text}}`);
  });

  it("are refused with integers that a double may have rounded", async () => {
    const attempt = (async () => read(readerOf(), struct(2 ** 53)))();
    await expect(attempt).rejects.toMatchObject({
      reason: "ARGUMENTS_INVALID",
      rawMessage: expect.stringContaining("send the arguments as a body of JSON"),
    });
  });
});
