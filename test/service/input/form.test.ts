import { describe, expect, it } from "vitest";
import type { EndpointManifest, JsonSchema } from "../../../src/protocol/manifest.ts";
import { ArgumentsReader } from "../../../src/service/input/arguments.ts";
import { localFiles } from "../../storage/files/local.ts";
import { endpoint } from "../manifests.ts";

const KEEPER = localFiles().api;

const URLENCODED = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data; boundary=parted";

const OPTIONAL_TEXT = { anyOf: [{ type: "string" }, { type: "null" }] };
const COLOUR = { $ref: "#/$defs/Colour" };
const TEXTS = { type: "array", items: { type: "string" } };
const DEFINITIONS = {
  Colour: { enum: ["red", "1"] },
  Place: { type: "object", properties: { x: { type: "integer" } } },
};

function taking(value: JsonSchema, files: EndpointManifest["files"] = {}): ArgumentsReader {
  const input = { type: "object", properties: { value }, $defs: DEFINITIONS };
  return new ArgumentsReader(endpoint({ name: "run", input, files }));
}

async function read(reader: ArgumentsReader, contentType: string, body: string | Uint8Array) {
  const input = { case: "body", value: { contentType, data: Buffer.from(body) } } as const;
  const payload = await reader.read(input, KEEPER);
  return { value: JSON.parse(payload.json).value, files: payload.files };
}

function part(head: string, content: string | Uint8Array): Buffer {
  const disposition = `--parted\r\nContent-Disposition: form-data; name="value"${head}\r\n\r\n`;
  return Buffer.concat([Buffer.from(disposition), Buffer.from(content), Buffer.from("\r\n")]);
}

const parts = (...all: Buffer[]) => Buffer.concat([...all, Buffer.from("--parted--\r\n")]);

const refused = (message: RegExp) =>
  expect.objectContaining({ rawMessage: expect.stringMatching(message) });

describe("a text in a form", () => {
  it.each([
    ["of a text", { type: "string" }, "12", "12"],
    ["of a text in JSON, as client libraries send it", { type: "string" }, '"a b"', "a b"],
    ["of a text or nothing", OPTIONAL_TEXT, "12", "12"],
    ["of a text or nothing", OPTIONAL_TEXT, "true", "true"],
    ["of a text or nothing", OPTIONAL_TEXT, '{"a":1}', '{"a":1}'],
    ["of a text or nothing", OPTIONAL_TEXT, "null", null],
    ["of a text or nothing, in one word", { type: ["string", "null"] }, "1.0", "1.0"],
    ["of an enum of texts", COLOUR, "1", "1"],
    ["of a constant text", { const: "1" }, "1", "1"],
    ["of an enum of numbers", { enum: [1, 2] }, "2", 2],
    ["of a number", { type: "integer" }, "12", 12],
    ["of a number or a text", { type: ["integer", "string"] }, "12", 12],
    ["of a number or a text", { type: ["integer", "string"] }, "1o", "1o"],
    ["of a text of a pattern", { type: "string", pattern: "^\\d{4}$" }, "2024", "2024"],
    ["of an object", { $ref: "#/$defs/Place" }, '{"x": 1}', { x: 1 }],
    ["of all that holds", { allOf: [COLOUR] }, "1", "1"],
    ["of a number or a text", { type: ["number", "string"] }, "No", "No"],
    ["of anything", {}, "NaN", "NaN"],
    ["of anything", {}, "12", 12],
    ["of anything", {}, "a b", "a b"],
    ["of a list of texts", TEXTS, "12", ["12"]],
    ["of a list of texts", TEXTS, '["a", "b"]', ["a", "b"]],
    ["of a list of numbers", { type: "array", items: { type: "number" } }, "1", [1]],
    ["of a list or nothing", { anyOf: [TEXTS, { type: "null" }] }, "1", ["1"]],
    ["of a list or nothing", { anyOf: [TEXTS, { type: "null" }] }, "null", null],
    ["of a list or nothing", { anyOf: [TEXTS, { type: "null" }] }, "nothing", ["nothing"]],
    ["of a list or a text", { anyOf: [TEXTS, { type: "string" }] }, "12", "12"],
    ["of a list or a number", { anyOf: [TEXTS, { type: "number" }] }, "12", 12],
    ["of a list or a number", { anyOf: [TEXTS, { type: "number" }] }, "a", ["a"]],
    ["of a list or an object", { type: ["array", "object"] }, '{"a": [1]}', { a: [1] }],
    ["of a list or an object", { type: ["array", "object"] }, "1", [1]],
    ["of a list of objects", { type: "array", items: { type: "object" } }, '{"a":1}', [{ a: 1 }]],
    ["of a pair", { type: "array", prefixItems: [{ type: "string" }] }, "1", ["1"]],
  ])("%s, %j: %s", async (_, schema, text, value) => {
    const reader = taking(schema);
    const encoded = `value=${encodeURIComponent(text)}`;
    expect((await read(reader, URLENCODED, encoded)).value).toEqual(value);
    expect((await read(reader, MULTIPART, parts(part("", text)))).value).toEqual(value);
    const named = part('; filename="blob"\r\nContent-Type: application/json', text);
    expect((await read(reader, MULTIPART, parts(named))).value).toEqual(value);
  });

  it.each([
    ["a,b", "a,b"],
    ["1", 1],
    ['["a"]', ["a"]],
  ])("is left to a validator that makes a list of it, %j", async (text, value) => {
    const input = { type: "object", properties: { value: TEXTS } };
    const check = {
      type: "object",
      properties: { value: { type: ["string", "number", "array"] } },
    };
    const reader = new ArgumentsReader(endpoint({ name: "run", input, check }));
    const encoded = `value=${encodeURIComponent(text)}`;
    expect((await read(reader, URLENCODED, encoded)).value).toEqual(value);
  });

  it.each([
    ["90", 90],
    ["-1.5", -1.5],
    ["-P1D", "-P1D"],
    ["P1D", "P1D"],
    ["2026-01-02", "2026-01-02"],
    ["true", "true"],
  ])("is a number where one is taken for what is described as a text, %j", async (text, value) => {
    const input = { type: "object", properties: { value: { type: "string" } } };
    const check = { type: "object", properties: { value: { type: ["string", "number"] } } };
    const reader = new ArgumentsReader(endpoint({ name: "run", input, check }));
    const encoded = `value=${encodeURIComponent(text)}`;
    expect((await read(reader, URLENCODED, encoded)).value).toEqual(value);
  });

  it("that is given twice makes a list, in the order of the parts, where one is taken", async () => {
    const blob = part('; filename="blob"', "2");
    const body = parts(part("", "1"), blob, part("", "a"));
    expect((await read(taking(TEXTS), MULTIPART, body)).value).toEqual(["1", "2", "a"]);
    expect((await read(taking({}), URLENCODED, "value=1&value=a+b")).value).toEqual([1, "a b"]);
    await expect(read(taking({ type: "string" }), URLENCODED, "value=1&value=2")).rejects.toEqual(
      refused(/argument "value" takes one value, 2 were sent/),
    );
  });

  it("is UTF-8 when it comes as a file", async () => {
    const body = parts(part('; filename="a.bin"', Buffer.from([0xff, 0xfe])));
    await expect(read(taking({ type: "string" }), MULTIPART, body)).rejects.toEqual(
      refused(/is a file, but this argument takes none: send its text, in UTF-8/),
    );
  });

  it("is NaN for a service in Python alone", async () => {
    const python = new ArgumentsReader(
      endpoint({ name: "run", json: "python", input: { type: "object", properties: {} } }),
    );
    for (const [reader, json] of [
      [python, '{"value":NaN}'],
      [taking({}), '{"value":"NaN"}'],
    ] as const) {
      const data = Buffer.from("value=NaN");
      const input = { case: "body", value: { contentType: URLENCODED, data } } as const;
      expect((await reader.read(input, KEEPER)).json).toBe(json);
    }
  });

  it("has escaped letters of all alphabets", async () => {
    const body = "value=%C3%A4+%F0%9F%98%80%26";
    expect((await read(taking({ type: "string" }), URLENCODED, body)).value).toBe("ä 😀&");
  });
});

describe("a form", () => {
  it("without a byte has no arguments", async () => {
    expect((await read(taking({}), MULTIPART, "")).value).toBeUndefined();
    expect((await read(taking({}), URLENCODED, "")).value).toBeUndefined();
    expect((await read(taking({}), MULTIPART, parts())).value).toBeUndefined();
  });

  it("that is JSON, as curl -d sends it, is told its type", async () => {
    for (const value of ["a=b&c", "x".repeat(1_000)]) {
      await expect(read(taking({}), URLENCODED, JSON.stringify({ value }))).rejects.toEqual(
        refused(/the body is JSON, and its content type says that it is a form/),
      );
    }
  });

  it("has at most 2,000 values", async () => {
    const many = (count: number) => `value=1${"&value=1".repeat(count - 1)}`;
    expect((await read(taking(TEXTS), URLENCODED, many(1_999))).value).toHaveLength(1_999);
    await expect(read(taking(TEXTS), URLENCODED, many(2_001))).rejects.toEqual(
      refused(/it has more than 2000 parts/),
    );
  });
});

describe("the memory of a form", () => {
  const content = Buffer.alloc(100_000, "b");
  const body = parts(part('; filename="a.png"\r\nContent-Type: image/png', content));

  async function readInChunks(sent: Buffer) {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < sent.length; at += 40_000) {
      chunks.push(Uint8Array.from(sent.subarray(at, at + 40_000)));
    }
    const stream = (async function* () {
      yield* chunks;
    })();
    const value = { contentType: MULTIPART, chunks: stream, maxHeldBytes: 2 ** 22, hold() {} };
    const reader = taking({ type: "string" }, { value: { required: true, array: false } });
    const { files } = await reader.read({ case: "stream", value }, KEEPER);
    return { files, isGivenBack: chunks.map(({ buffer }) => (buffer as ArrayBuffer).detached) };
  }

  it("is given back when it was read, and the file in it stays", async () => {
    const { files, isGivenBack } = await readInChunks(body);
    expect(files).toEqual([{ contentType: "image/png", filename: "a.png", data: content }]);
    expect(isGivenBack).toEqual([true, true, true]);
  });

  it("is not held until then where the form is long", async () => {
    const { isGivenBack } = await readInChunks(Buffer.concat([body, Buffer.alloc(2 ** 20)]));
    expect(isGivenBack.some(Boolean)).toBe(false);
  });
});

const PICTURE = { required: false, array: false, contentType: "image/*" };
const PNG = { required: false, array: false, contentType: "image/png" };
const NOTE = { required: false, array: false, contentType: "text/*,application/pdf" };
const BYTES = Buffer.from([0x89, 0x50, 0xff]);

describe("a file in a form", () => {
  it.each([
    ["nothing", PICTURE, "", "application/octet-stream"],
    ["nothing", NOTE, "", "text/plain"],
    ["no type that is known", PICTURE, "application/octet-stream", "application/octet-stream"],
    ["no type that is known", PICTURE, "binary/octet-stream", "application/octet-stream"],
    ["no type that is known", PNG, "*/*", "application/octet-stream"],
    ["no type that is known", PNG, "image/*", "application/octet-stream"],
    ["a type in capitals", PICTURE, "IMAGE/PNG", "image/png"],
    ["a type with parameters", PNG, "image/png; q=1", "image/png"],
    ["another name of a type", PICTURE, "image/jpg", "image/jpeg"],
    ["another name of a type", PICTURE, "image/pjpeg", "image/jpeg"],
    ["another name of a type", PNG, "image/x-png", "image/png"],
    [
      "a name that the author chose",
      { ...PNG, contentType: "image/jpg" },
      "image/jpeg",
      "image/jpg",
    ],
    ["another name of a type", { ...PNG, contentType: "audio/wav" }, "audio/x-wav", "audio/wav"],
    ["another name of a type", { ...PNG, contentType: "audio/mp3" }, "audio/mpeg", "audio/mp3"],
    ["one of several types", NOTE, "application/x-pdf", "application/pdf"],
    [
      "a type of a vendor",
      { ...PNG, contentType: "application/vnd.*" },
      "application/vnd.a",
      "application/vnd.a",
    ],
  ])("says %s: for %j, %s is %s", async (_, file, sent, contentType) => {
    const head = sent === "" ? "" : `\r\nContent-Type: ${sent}`;
    const body = parts(part(`; filename="a.png"${head}`, BYTES));
    const { files } = await read(taking({ type: "string" }, { value: file }), MULTIPART, body);
    expect(files).toEqual([{ contentType, filename: "a.png", data: BYTES }]);
  });

  it("may have a type and no name", async () => {
    const body = parts(part("\r\nContent-Type: image/png", BYTES));
    const { files } = await read(taking({ type: "string" }, { value: PNG }), MULTIPART, body);
    expect(files).toEqual([{ contentType: "image/png", data: BYTES }]);
  });

  it.each([
    ["a.pdf", "\r\nContent-Type: application/pdf", "application/pdf"],
    ["a.txt", "\r\nContent-Type: text/plain", "text/plain"],
    ["a.txt", "", "text/plain"],
  ])("of another type than the argument's is refused: %s", async (name, head, type) => {
    const body = parts(part(`; filename="${name}"${head}`, BYTES));
    await expect(read(taking({ type: "string" }, { value: PNG }), MULTIPART, body)).rejects.toEqual(
      refused(new RegExp(`takes image/png, "${name}" is ${type}`)),
    );
  });

  it("that nobody chose in a browser is none", async () => {
    const none = part('; filename=""\r\nContent-Type: application/octet-stream', "");
    const { value, files } = await read(
      taking({ type: "string" }, { value: PNG }),
      MULTIPART,
      parts(none),
    );
    expect({ value, files }).toEqual({ value: undefined, files: [] });
    const required = taking({ type: "string" }, { value: { ...PNG, required: true } });
    await expect(read(required, MULTIPART, parts(none))).rejects.toEqual(
      refused(/is required: send a file/),
    );
  });
});

describe("a list of files without any part", () => {
  const list = { type: "array", items: { type: "string" } };
  const none = parts();

  it("is empty where the list has to be there and may be empty", async () => {
    const reader = taking(list, { value: { required: true, array: true } });
    expect(await read(reader, MULTIPART, none)).toEqual({ value: [], files: [] });
  });

  it("is missing where it may not be empty, and left out where it may be", async () => {
    const least = taking(list, { value: { required: true, array: true, minItems: 1 } });
    await expect(read(least, MULTIPART, none)).rejects.toEqual(refused(/is required/));
    const optional = taking(list, { value: { required: false, array: true } });
    expect((await read(optional, MULTIPART, none)).value).toBeUndefined();
  });
});
