/** JSON Schemas of messages, as REST encodes them. */
import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { JsonSchema } from "../../src/protocol/manifest.ts";
import { enumWord } from "../../src/server/rest/spelling.ts";
import { commentOf } from "./comments.ts";

/** Messages with a special JSON form (https://protobuf.dev/programming-guides/json/). */
const WELL_KNOWN: { readonly [typeName: string]: JsonSchema } = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(\\.[0-9]+)?s$" },
  "google.protobuf.FieldMask": { type: "string", description: "Comma-separated names of fields." },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.Value": {},
  "google.protobuf.Empty": { type: "object" },
  "google.api.HttpBody": {
    type: "object",
    properties: {
      content_type: { type: "string" },
      data: { type: "string", contentEncoding: "base64" },
    },
  },
};

const WIDE = [
  ScalarType.INT64,
  ...[ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64],
];
const FLOATING = [ScalarType.FLOAT, ScalarType.DOUBLE];

/** Collects the schemas of messages as components of a document. */
export class MessageSchemas {
  readonly components: Record<string, JsonSchema> = {};

  /** A message: a reference to its component, or the schema of a well-known one. */
  of(message: DescMessage): JsonSchema {
    const known = WELL_KNOWN[message.typeName];
    if (known) {
      return known;
    }
    if (!Object.hasOwn(this.components, message.name)) {
      // A message may contain itself.
      this.components[message.name] = {};
      this.components[message.name] = {
        ...described(commentOf(message)),
        ...this.ofFields(message.fields),
      };
    }
    return { $ref: `#/components/schemas/${message.name}` };
  }

  /** An object of some fields of a message. */
  ofFields(fields: readonly DescField[]): JsonSchema {
    const properties = fields.map((field) => [field.name, this.ofField(field)]);
    return { type: "object", properties: Object.fromEntries(properties) };
  }

  ofField(field: DescField): JsonSchema {
    return { ...this.#value(field), ...described(commentOf(field)) };
  }

  #value(field: DescField): JsonSchema {
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: this.#single(field.message ?? field.enum ?? field.scalar) };
      case "map":
        return {
          type: "object",
          additionalProperties: this.#single(field.message ?? field.enum ?? field.scalar),
        };
      default:
        return this.#single(field.message ?? field.enum ?? field.scalar);
    }
  }

  #single(of: DescMessage | DescEnum | ScalarType | undefined): JsonSchema {
    if (typeof of === "object") {
      return of.kind === "message" ? this.of(of) : ofEnum(of);
    }
    if (of === ScalarType.BOOL) {
      return { type: "boolean" };
    }
    if (of === ScalarType.BYTES) {
      return { type: "string", contentEncoding: "base64" };
    }
    if (of === ScalarType.STRING) {
      return { type: "string" };
    }
    if (of !== undefined && WIDE.includes(of)) {
      return { type: "string", format: "int64" };
    }
    return { type: of !== undefined && FLOATING.includes(of) ? "number" : "integer" };
  }
}

function ofEnum(desc: DescEnum): JsonSchema {
  // The first value means unspecified.
  return { type: "string", enum: desc.values.slice(1).map(({ name }) => enumWord(desc, name)) };
}

function described(comment: readonly string[]): JsonSchema {
  return comment.length === 0 ? {} : { description: comment.join("\n\n") };
}
