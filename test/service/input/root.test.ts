import { describe, expect, it } from "vitest";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { ArgumentsReader } from "../../../src/service/input/arguments.ts";
import { ReaderThreads } from "../../../src/service/input/threads.ts";
import { localFiles } from "../../storage/files/local.ts";
import { endpoint } from "../manifests.ts";

const JSON_TYPE = "application/json";

function taking(value: object, files: EndpointManifest["files"] = {}): ArgumentsReader {
  const input = { type: "object", properties: { value }, required: ["value"] };
  return new ArgumentsReader(endpoint({ name: "run", input, files, rootArgument: "value" }));
}

async function read(
  reader: ArgumentsReader,
  contentType: string,
  body: string | Uint8Array,
  threads?: ReaderThreads,
) {
  const data = Buffer.from(body);
  const input = { case: "body", value: { contentType, data } } as const;
  const payload = await reader.read(input, localFiles().api, threads);
  return { arguments: JSON.parse(payload.json), files: payload.files };
}

const file = { required: true, array: false };

describe("a body that is the value of an argument", () => {
  it.each([
    ["a list", { type: "array" }, "[1, 2]", [1, 2]],
    ["a number", { type: "number" }, "2.5", 2.5],
    ["an object", { type: "object" }, '{"a": 1, "value": 2}', { a: 1, value: 2 }],
    ["a text in JSON", { type: "string" }, '"ä"', "ä"],
  ])("may be JSON: %s", async (_, schema, body, value) => {
    expect(await read(taking(schema), JSON_TYPE, body)).toEqual({
      arguments: { value },
      files: [],
    });
  });

  it("may be bare text of any type", async () => {
    const text = taking({ type: "string" });
    for (const contentType of ["text/plain", "text/markdown; charset=utf-8", ""]) {
      const given = await read(text, contentType, '{"ä"}');
      expect(given.arguments).toEqual({ value: '{"ä"}' });
    }
  });

  it("may be bare text that is called JSON, where it is no text in JSON", async () => {
    for (const body of ["hey", "12", "", "null"]) {
      const given = await read(taking({ type: "string" }), JSON_TYPE, body);
      expect(given.arguments).toEqual({ value: body });
    }
  });

  it("may be the bytes of a file, whatever the client calls them", async () => {
    const bytes = Buffer.from([0xff, 0, 0x7b]);
    for (const [given, kept] of [
      ["image/png", "image/png"],
      [JSON_TYPE, "application/octet-stream"],
    ] as const) {
      expect(await read(taking({ type: "string" }, { value: file }), given, bytes)).toEqual({
        arguments: { value: 0 },
        files: [{ contentType: kept, data: bytes }],
      });
    }
  });

  it("may have the argument by name, as every other endpoint takes it", async () => {
    expect((await read(taking({ type: "array" }), JSON_TYPE, '{"value": [1]}')).arguments).toEqual({
      value: [1],
    });
    const url = `{ "value": "data:text/plain;base64,${btoa("x")}" }`;
    const given = await read(taking({ type: "string" }, { value: file }), JSON_TYPE, url);
    expect(given.files).toEqual([{ contentType: "text/plain", data: Buffer.from("x") }]);
  });

  it("is read on a thread where it is large", async () => {
    await using threads = new ReaderThreads({ onFailed: (err) => expect.unreachable(String(err)) });
    const long = Array.from({ length: 50_000 }, (_, index) => index);
    const given = await read(taking({ type: "array" }), JSON_TYPE, JSON.stringify(long), threads);
    expect(given.arguments).toEqual({ value: long });
  });

  it.each([
    ["a value that the schema refuses", { type: "array" }, {}, JSON_TYPE, "1", "ARGUMENTS_INVALID"],
    ["what is no JSON", { type: "array" }, {}, JSON_TYPE, '1,"value":[1]', "BODY_MALFORMED"],
    ["text that is no list", { type: "array" }, {}, "text/plain", "a", "BODY_MALFORMED"],
    [
      "text that is not UTF-8",
      { type: "string" },
      {},
      "text/plain",
      Buffer.from([0xff]),
      "BODY_MALFORMED",
    ],
    [
      "a URL for a file",
      { type: "string" },
      { value: file },
      JSON_TYPE,
      "http://localhost/a",
      "ARGUMENTS_INVALID",
    ],
    [
      "a file of another type",
      { type: "string" },
      { value: { ...file, contentType: "image/*" } },
      "text/plain",
      "x",
      "ARGUMENTS_INVALID",
    ],
  ])("is refused: %s", async (_, schema, files, contentType, body, reason) => {
    await expect(read(taking(schema, files), contentType, body)).rejects.toMatchObject({ reason });
  });
});
