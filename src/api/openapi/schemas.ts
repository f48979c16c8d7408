/**
 * JSON Schemas of messages, as REST reads and writes them. What callers send is described by its
 * rules and takes no other fields; what the server sends may have more fields one day.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  ScalarType,
} from "@bufbuild/protobuf";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { enumWord } from "../../server/rest/spelling.ts";
import { componentReference, unseen } from "../../service/openapi/hoist.ts";
import { openEnum } from "../../service/openapi/open-enum.ts";
import { checked } from "./checked.ts";
import { commentOf } from "./comments.ts";
import { innerRules, isOneofRequired, isRequired, rulesBetween, rulesOf } from "./rules.ts";
import { BASE64, durationPattern } from "./texts.ts";

const DURATION: JsonSchema = { type: "string", pattern: durationPattern(), examples: ["30s"] };

/** Messages with a special JSON form (https://protobuf.dev/programming-guides/json/). */
const WELL_KNOWN: { readonly [typeName: string]: JsonSchema } = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": DURATION,
  "google.protobuf.FieldMask": { type: "string", description: "Comma-separated names of fields." },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.Value": {},
  "google.protobuf.Empty": { type: "object" },
  "google.api.HttpBody": {
    type: "object",
    additionalProperties: false,
    properties: {
      content_type: { type: "string" },
      data: { type: "string", contentEncoding: "base64", pattern: BASE64 },
    },
  },
};

const INT32 = { type: "integer", format: "int32", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const UINT32 = { ...INT32, minimum: 0, maximum: 2 ** 32 - 1 };
const NUMBER = { type: "number" };
/** Of a series in an answer: the JSON form of Protobuf writes a gap as text. */
const NUMBER_OR_GAP = { anyOf: [NUMBER, { type: "string", pattern: "^NaN$" }] };
/** Text, because JavaScript's numbers have 53 bits. */
const INT64 = { type: "string", format: "int64", pattern: "^-?[0-9]{1,19}$" };
const UINT64 = { ...INT64, pattern: "^[0-9]{1,20}$" };

const SCALARS: { readonly [type in ScalarType]: JsonSchema } = {
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64", pattern: BASE64 },
  [ScalarType.FLOAT]: NUMBER,
  [ScalarType.DOUBLE]: NUMBER,
  [ScalarType.INT32]: INT32,
  [ScalarType.SINT32]: INT32,
  [ScalarType.SFIXED32]: INT32,
  [ScalarType.UINT32]: UINT32,
  [ScalarType.FIXED32]: UINT32,
  [ScalarType.INT64]: INT64,
  [ScalarType.SINT64]: INT64,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.FIXED64]: UINT64,
};

/** Who writes a message: the caller in a request, or the server in an answer. */
type Writer = "caller" | "server";

/** Collects the schemas of messages as components of a document. */
export class MessageSchemas {
  readonly components: Record<string, JsonSchema> = {};

  /** A message: a reference to its component, or the schema of a well-known one. */
  of(message: DescMessage, writer: Writer): JsonSchema {
    const known = WELL_KNOWN[message.typeName];
    if (known) {
      return known;
    }
    const name = writer === "caller" ? `${message.name}Input` : message.name;
    if (!Object.hasOwn(this.components, name)) {
      // A message may contain itself.
      this.components[name] = {};
      this.components[name] = this.ofFields(message, message.fields, { writer });
    }
    return { $ref: componentReference(name) };
  }

  /** An object of some fields of a message. `isPartial`: those that stay as they are are left out. */
  ofFields(
    message: DescMessage,
    fields: readonly DescField[],
    { writer, isPartial = false }: { readonly writer: Writer; readonly isPartial?: boolean },
  ): JsonSchema {
    const values = fields.map((field) => [field, this.ofField(field, writer)] as const);
    const isInput = writer === "caller";
    const required = values
      .filter(([field, schema]) =>
        isInput ? !isPartial && isRequired(field, schema) : isAlwaysSent(field),
      )
      .map(([{ name }]) => name);
    return {
      ...described([...commentOf(message), ...(isInput ? rulesBetween(message) : [])]),
      type: "object",
      properties: Object.fromEntries(values.map(([{ name }, schema]) => [name, schema])),
      ...(required.length > 0 ? { required } : {}),
      ...(isInput ? { additionalProperties: false } : {}),
      ...unseen([
        ...ofOneofs(
          message.oneofs.filter((oneof) => oneof.fields.every((one) => fields.includes(one))),
        ),
        ...(isInput ? [checked(message.name, "")] : []),
      ]),
    };
  }

  /** A field with its rules. */
  ofField(field: DescField, writer: Writer): JsonSchema {
    return { ...this.#value(field, writer), ...described(commentOf(field)) };
  }

  #value(field: DescField, writer: Writer): JsonSchema {
    const single = this.#single(field.message ?? field.enum ?? field.scalar, writer);
    const isInput = writer === "caller";
    const rules = isInput ? rulesOf(field) : {};
    const more = isInput ? checked(field.parent.name, field.name) : {};
    if (field.fieldKind !== "list" && field.fieldKind !== "map") {
      return { ...single, ...rules, ...more };
    }
    const { items, keys } = isInput ? innerRules(field) : { items: {}, keys: undefined };
    const each = (own: unknown) => ({ ...single, ...items, ...(own as JsonSchema) });
    if (field.fieldKind === "list" && !isInput && field.scalar === ScalarType.DOUBLE) {
      return { type: "array", items: NUMBER_OR_GAP };
    }
    if (field.fieldKind === "list") {
      return { type: "array", ...rules, ...more, items: each(more.items) };
    }
    return {
      type: "object",
      ...(keys ? { propertyNames: keys } : {}),
      ...rules,
      additionalProperties: each(more.additionalProperties),
    };
  }

  #single(of: DescMessage | DescEnum | ScalarType | undefined, writer: Writer): JsonSchema {
    if (typeof of === "object") {
      return of.kind === "message" ? this.of(of, writer) : ofEnum(of, writer);
    }
    return SCALARS[of ?? ScalarType.STRING];
  }
}

function ofEnum(desc: DescEnum, writer: Writer): JsonSchema {
  // The first value means unspecified.
  const words = desc.values.slice(1).map(({ name }) => enumWord(desc, name));
  return writer === "server" ? openEnum(words) : { type: "string", enum: words };
}

/** Answers have their lists, empty ones too, and leave out other fields that are empty. */
function isAlwaysSent({ fieldKind }: DescField): boolean {
  return fieldKind === "list";
}

/** Members of a oneof exclude each other. */
function ofOneofs(oneofs: readonly DescOneof[]): JsonSchema[] {
  return oneofs
    .filter(({ fields }) => fields.length > 1)
    .map((oneof) => {
      const given = oneof.fields.map(({ name }) => ({ required: [name] }));
      return { oneOf: isOneofRequired(oneof) ? given : [...given, { not: { anyOf: given } }] };
    });
}

function described(comment: readonly string[]): JsonSchema {
  return comment.length === 0 ? {} : { description: comment.join("\n\n") };
}
