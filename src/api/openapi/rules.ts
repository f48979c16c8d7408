/**
 * JSON Schema of the rules of `buf.validate`, which every protocol enforces. A rule without a
 * keyword here throws when the document is made, so that none is enforced unsaid.
 */
import {
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  Ignore,
  message as messageOption,
  oneof as oneofOption,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { base64Length, durationPattern } from "./texts.ts";

/** What the rules of a field say of its value; empty without rules. */
export function rulesOf(field: DescField): JsonSchema {
  return hasOption(field, fieldOption) ? said(field, getOption(field, fieldOption)) : {};
}

/** What the rules of a list or a map say of its items, and of a map's keys. */
export function innerRules(field: DescField): {
  readonly items: JsonSchema;
  readonly keys: JsonSchema | undefined;
} {
  const { type } = getOption(field, fieldOption);
  const items = type.case === "repeated" ? type.value.items : undefined;
  const { keys, values } = type.case === "map" ? type.value : {};
  const inner = items ?? values;
  return { items: inner ? said(field, inner) : {}, keys: keys && said(field, keys) };
}

/**
 * True if a message without this field is refused: by a rule, or because its empty value is.
 * @param schema what is said of the field's value
 */
export function isRequired(field: DescField, schema: JsonSchema): boolean {
  const { required, ignore } = getOption(field, fieldOption);
  if (required) {
    return true;
  }
  if (hasPresence(field) || ignore !== Ignore.UNSPECIFIED) {
    return false;
  }
  if (field.fieldKind === "enum") {
    // The empty value means unspecified, which an enum that takes all others takes too.
    const { type } = getOption(field, fieldOption);
    return type.case === "enum" && type.value.notIn.includes(0);
  }
  const { minLength, minItems, minProperties, minimum, const: only, format, pattern } = schema;
  return (
    [minLength, minItems, minProperties, minimum].some((least) => Number(least ?? 0) > 0) ||
    (only !== undefined && only !== "") ||
    format === "email" ||
    (pattern !== undefined && !new RegExp(String(pattern), "u").test(""))
  );
}

/** Fields whose absence differs from their empty value; rules do not see absent ones. */
function hasPresence(field: DescField): boolean {
  return field.oneof !== undefined || field.proto.proto3Optional || field.fieldKind === "message";
}

/** What a rule between fields says, in words. */
export function rulesBetween(desc: DescMessage): string[] {
  return hasOption(desc, messageOption)
    ? getOption(desc, messageOption).cel.map(({ message }) => `Refused if ${message}.`)
    : [];
}

/** True if one member has to be given; otherwise at most one may be. */
export function isOneofRequired(oneof: DescOneof): boolean {
  return hasOption(oneof, oneofOption) && getOption(oneof, oneofOption).required;
}

type Word = (value: unknown) => JsonSchema;

const least: Word = (value) => ({ minimum: Number(value) });
const most: Word = (value) => ({ maximum: Number(value) });
const NUMBER = { gte: least, lte: most } satisfies { [rule: string]: Word };

const KEYWORDS: { readonly [type: string]: { readonly [rule: string]: Word } } = {
  string: {
    min_len: (count) => ({ minLength: Number(count) }),
    max_len: (count) => ({ maxLength: Number(count) }),
    // JSON Schema counts characters, which have one byte or more.
    max_bytes: (count) => ({ maxLength: Number(count) }),
    pattern: (pattern) => ({ pattern }),
  },
  bytes: {
    min_len: (count) => ({ minLength: base64Length(Number(count)) }),
    max_len: (count) => ({ maxLength: base64Length(Number(count)) }),
  },
  repeated: {
    min_items: (count) => ({ minItems: Number(count) }),
    max_items: (count) => ({ maxItems: Number(count) }),
    items: () => ({}),
  },
  map: {
    max_pairs: (count) => ({ maxProperties: Number(count) }),
    keys: () => ({}),
    values: () => ({}),
  },
  // Values outside an enum, and the one that means unspecified, are never in its schema.
  enum: { defined_only: () => ({}), not_in: () => ({}) },
  int32: NUMBER,
  int64: NUMBER,
  double: NUMBER,
  duration: {
    // Every duration of the API has an upper limit, whose pattern begins at zero.
    gte: (limit) => ({ examples: [`${Math.max(secondsOf(limit), 30)}s`] }),
    lte: (limit) => ({ pattern: durationPattern(secondsOf(limit)) }),
  },
};

function said(field: DescField, rules: FieldRules): JsonSchema {
  const { type } = rules;
  const more = rules.cel.length + rules.celExpression.length;
  if (type.case === undefined && more === 0) {
    return {};
  }
  const desc = FieldRulesSchema.fields.find(({ localName }) => localName === type.case)?.message;
  if (desc === undefined || type.case === undefined || more > 0) {
    throw new Error(`the OpenAPI document has no words for the rules of ${field.toString()}`);
  }
  const set = reflect(desc, type.value);
  const words = set.sortedFields
    .filter((one) => set.isSet(one))
    .map((one) => {
      const word = KEYWORDS[type.case]?.[one.name];
      if (word === undefined) {
        throw new Error(
          `the OpenAPI document has no word for ${type.case}.${one.name} of ${field.toString()}`,
        );
      }
      return word(set.get(one));
    });
  return Object.assign({}, ...words);
}

function secondsOf(limit: unknown): number {
  return Number((limit as { readonly message: Duration }).message.seconds);
}
