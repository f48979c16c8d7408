import { describe, expect, it } from "vitest";
import { ArgumentsReader } from "../../../src/service/input/arguments.ts";
import { localFiles } from "../../storage/files/local.ts";
import { threadTimer } from "../../thread-time.ts";
import { endpoint } from "../manifests.ts";

const KEEPER = localFiles().api;

it("a body of 4 MB in which everything is wrong is refused without holding up the node", () => {
  const numbers = { type: "array", items: { type: "number" } };
  const reader = new ArgumentsReader(
    endpoint({ name: "sum", input: { type: "object", properties: { numbers } } }),
  );
  reader.compile();
  const data = Buffer.from(`{"numbers":[${`"${"x".repeat(38)}",`.repeat(99_000)}""]}`);
  const spentMs = threadTimer();
  const read = () =>
    reader.read({ case: "body", value: { contentType: "application/json", data } }, KEEPER);
  expect(read).toThrow(
    expect.objectContaining({
      reason: "ARGUMENTS_INVALID",
      violations: [{ field: "numbers.0", description: "must be number" }],
    }),
  );
  // Nearly all of it is the parser's; describing every fault took seconds.
  expect(spentMs()).toBeLessThan(1_000);
});

describe("a body of JSON", () => {
  const reader = new ArgumentsReader(
    endpoint({ name: "run", input: { type: "object", properties: { a: { type: "integer" } } } }),
  );
  const read = (contentType: string, body: string) => {
    const input = { contentType, data: Buffer.from(body) };
    return reader.read({ case: "body", value: input }, KEEPER);
  };

  it.each([
    ...["", "*/*", "text/plain", "text/plain;charset=UTF-8", "application/octet-stream"],
    ...["binary/octet-stream", "Application/JSON", "text/json", "application/vnd.api+json"],
    ...["application/xml", "text/html", "image/png"],
  ])("may be called %j", (contentType) => {
    expect(read(contentType, ' {"a": 1}')).toEqual({ json: ' {"a": 1}', files: [] });
  });

  it.each(["", "application/json", "text/plain", "application/octet-stream"])(
    "without a byte has no arguments, also as %j",
    (contentType) => {
      expect(read(contentType, "")).toEqual({ json: "{}", files: [] });
    },
  );

  it.each([
    ["text/plain", "a=1", "BODY_MALFORMED"],
    ["", "a", "BODY_MALFORMED"],
    ["application/json", " ", "BODY_MALFORMED"],
    ["application/xml", "<a/>", "CONTENT_TYPE_UNSUPPORTED"],
    ["application/vnd.bentoml+pickle", "\x80\x05", "CONTENT_TYPE_UNSUPPORTED"],
    ["text/plain; charset=latin1", "{}", "CONTENT_TYPE_UNSUPPORTED"],
  ])("is none as %j with %j", (contentType, body, reason) => {
    expect(() => read(contentType, body)).toThrow(expect.objectContaining({ reason }));
  });
});

describe.each([
  ["one file", false],
  ["a list of files", true],
])("null for %s", (_, array) => {
  const read = (required: boolean) =>
    new ArgumentsReader(endpoint({ name: "run", files: { file: { required, array } } })).read(
      {
        case: "body",
        value: { contentType: "application/json", data: Buffer.from('{"a": 1, "file": null}') },
      },
      KEEPER,
    );

  it("is none where none may be given", () => {
    expect(read(false)).toEqual({ json: '{"a":1}', files: [] });
  });

  it("is refused where one has to be", () => {
    expect(() => read(true)).toThrow(
      expect.objectContaining({ violations: [expect.objectContaining({ field: "file" })] }),
    );
  });
});

describe("beside a large argument that fits, an argument", () => {
  const reader = new ArgumentsReader(
    endpoint({
      name: "run",
      input: {
        type: "object",
        properties: {
          values: { type: "array", items: { type: "number" } },
          times: { type: "integer" },
          row: { $ref: "#/$defs/row" },
          mode: { enum: ["a", "b"] },
        },
        required: ["values"],
        additionalProperties: false,
        $defs: { row: { type: "object", properties: { id: { type: "integer" } } } },
      },
    }),
  );
  const read = (more: string) => {
    const values = JSON.stringify(Array(40_000).fill(0.5));
    const data = Buffer.from(`{"values":${values},${more}}`);
    return reader.read({ case: "body", value: { contentType: "application/json", data } }, KEEPER);
  };

  it.each([
    ["times", '"times":"x"', "must be integer"],
    ["row.id", '"row":{"id":"x"},"mode":"a"', "must be integer"],
    ["mode", '"mode":"c","times":1', 'must be one of "a", "b"'],
    ["rows", '"rows":[]', "is not an argument of this endpoint"],
  ])("that is wrong is refused: %s", (field, more, description) => {
    expect(() => read(more)).toThrow(
      expect.objectContaining({
        reason: "ARGUMENTS_INVALID",
        violations: [{ field, description }],
      }),
    );
  });

  it("that is right and does not look so is taken", () => {
    expect(read('"times":1.0,"row":{"id":1e3}')).toMatchObject({ files: [] });
  });
});
