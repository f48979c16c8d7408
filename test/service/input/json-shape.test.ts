import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanJson } from "../../../src/collections/json-scan.ts";
import { countsObjects, shapeOf } from "../../../src/service/input/json-shape.ts";

const ajv = new Ajv2020({ strict: false, logger: false });

/** Whether the scan takes a text for a value of the schema; undefined for a schema that it cannot check. */
function fits(schema: object, text: string, root: { readonly [name: string]: unknown } = {}) {
  const shape = shapeOf(schema, root);
  const scanned =
    shape && scanJson(Buffer.from(`{"x":${text}}`), { shapes: new Map([["x", shape]]) });
  return scanned?.members?.[0]?.isFit;
}

const ROW = {
  type: "object",
  properties: { id: { type: "integer" }, name: { type: "string" }, tags: { type: "array" } },
  required: ["id", "name"],
};
const ROWS = { type: "array", items: ROW };
const CLOSED = { ...ROW, additionalProperties: false };

describe("objects", () => {
  it.each<[string, object, string, boolean]>([
    ["with what has to be there", ROWS, '[{"id":1,"name":"a"}]', true],
    ["in another order", ROWS, '[{"name":"a", "tags":[] ,"id":1}, {"id":2,"name":""}]', true],
    ["without what has to be there", ROWS, '[{"id":1,"name":"a"},{"id":1}]', false],
    ["that are empty", ROWS, "[{}]", false],
    ["with a member of another kind", ROWS, '[{"id":"1","name":"a"}]', false],
    ["with others", ROWS, '[{"id":1,"name":"a","more":{"id":"x"}}]', true],
    ["with others where there may be none", CLOSED, '{"id":1,"name":"a","more":1}', false],
    ["with an escaped name", CLOSED, '{"\\u0069d":1,"id":1,"name":"a"}', false],
    ["with a name twice", ROWS, '[{"id":1,"name":"a","name":"b"}]', false],
    ["whose names begin alike", CLOSED, '{"id":1,"name":"a","i":1}', false],
    [
      "of one kind of members",
      { additionalProperties: { type: "number" } },
      '{"ä":1,"b":2.5}',
      true,
    ],
    ["of other members", { additionalProperties: { type: "number" } }, '{"ä":1,"b":"x"}', false],
  ])("%s", (_, schema, text, expected) => {
    expect(fits(schema, text)).toBe(expected);
  });
});

it("looks at what is referred to, as far as that ends", () => {
  const root = {
    $defs: { row: ROW, loop: { type: "array", items: { $ref: "#/$defs/loop" } } },
  };
  const rows = { type: "array", items: { $ref: "#/$defs/row" } };
  expect(fits(rows, '[{"id":1,"name":"a"}]', root)).toBe(true);
  expect(fits(rows, '[{"id":1}]', root)).toBe(false);
  for (const name of ["loop", "none", "__proto__", "constructor"]) {
    expect(shapeOf({ $ref: `#/$defs/${name}` }, root)).toBeUndefined();
  }
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => {
      const $ref = `#/$defs/l${level + 1}`;
      return [`l${level}`, { properties: { a: { $ref }, b: { $ref } } }];
    }),
  );
  expect(shapeOf({ $ref: "#/$defs/l0" }, { $defs: { ...doubling, l40: {} } })).toBeUndefined();
});

it.each([
  { type: "string", minLength: 1 },
  { type: "object", patternProperties: { "^a": {} } },
  { type: "array", items: { enum: [1] } },
  { type: "array", uniqueItems: true },
  { type: "object", properties: { a: { pattern: "x" } } },
  { $ref: "#/$defs/row", minItems: 1 },
  { anyOf: [ROW, CLOSED] },
  { properties: { a: false } },
  { properties: { ["__proto__"]: {} } },
  { properties: Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`a${i}`, {}])) },
])("leaves %j to the check", (schema) => {
  expect(shapeOf(schema, { $defs: { row: ROW } })).toBeUndefined();
});

it("counts objects whose members are told, as those that are parsed", () => {
  const counts = (schema: object) => countsObjects(shapeOf(schema) ?? { kinds: 0 });
  expect([ROWS, CLOSED, { type: "array", items: ROWS }].map(counts)).toEqual([true, true, true]);
  const plain = { type: "array", items: { type: ["string", "null"] } };
  expect([plain, {}, { type: "object" }].map(counts)).toEqual([false, false, false]);
});

it("takes no value that the schema refuses", () => {
  const kinds = ["integer", "number", "string", "boolean", "null", "array", "object"];
  const names = fc.constantFrom("a", "b", "ä", "__proto__", 'q"');
  const schema = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: "small" }, tie("kind"), tie("list"), tie("record"), tie("either")),
    kind: fc.record({ type: fc.subarray(kinds, { minLength: 1 }) }),
    list: fc.record(
      {
        type: fc.constant("array"),
        items: tie("any"),
        minItems: fc.nat(2),
        maxItems: fc.nat(3),
      },
      { requiredKeys: ["type"] },
    ),
    record: fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(names, tie("any"), { maxKeys: 3 }),
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie("any")),
      },
      { requiredKeys: [] },
    ),
    either: fc.record({ anyOf: fc.array(tie("any"), { minLength: 1, maxLength: 3 }) }),
  })).any as fc.Arbitrary<object>;
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.oneof(fc.nat(3), fc.constant(2.5), fc.constant("x"), fc.boolean(), fc.constant(null)),
      fc.array(tie("any"), { maxLength: 3 }),
      fc.dictionary(names, tie("any"), { maxKeys: 3 }),
    ),
  })).any;
  let taken = 0;
  fc.assert(
    fc.property(schema, value, (one, given) => {
      if (fits(one, JSON.stringify(given)) === true) {
        taken += 1;
        expect(ajv.validate(one, given)).toBe(true);
      }
    }),
    { numRuns: 3_000, seed: 7 },
  );
  expect(taken).toBeGreaterThan(100);
});
