/** Files in JSON Schema: they are written `{type: "string", format: "binary"}`, as in OpenAPI. */
import type { FileArgument, FileSpec, JsonSchema } from "../protocol/manifest.ts";

/** A property that is a file or a list of files: its JSON Schema and its limits. */
interface FileProperty {
  readonly jsonSchema: JsonSchema;
  readonly file: Omit<FileArgument, "required">;
}

/** The file that a schema describes; undefined for any other schema. */
export function fileSpecOf(schema: JsonSchema): FileSpec | undefined {
  if (schema.type !== "string" || schema.format !== "binary") {
    return undefined;
  }
  const { contentMediaType, maxLength } = schema;
  return {
    ...(typeof contentMediaType === "string" && { contentType: contentMediaType }),
    ...(typeof maxLength === "number" && { maxBytes: maxLength }),
  };
}

/** The file or list of files that a property describes; undefined for any other. */
export function filePropertyOf(schema: JsonSchema): FileProperty | undefined {
  const spec = fileSpecOf(schema);
  if (spec !== undefined) {
    return { jsonSchema: fileJsonSchema(schema, spec), file: { ...spec, array: false } };
  }
  const items = schema.type === "array" && isObject(schema.items) ? schema.items : undefined;
  const itemSpec = items && fileSpecOf(items);
  if (items === undefined || itemSpec === undefined) {
    return undefined;
  }
  const { minItems, maxItems } = schema;
  const bounds = {
    ...(typeof minItems === "number" && { minItems }),
    ...(typeof maxItems === "number" && { maxItems }),
  };
  return {
    jsonSchema: {
      type: "array",
      ...annotations(schema),
      items: fileJsonSchema(items, itemSpec),
      ...bounds,
    },
    file: { ...itemSpec, array: true, ...bounds },
  };
}

/** True when a schema describes a file anywhere inside. */
export function containsFile(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) {
    return false;
  }
  if (isObject(schema) && fileSpecOf(schema) !== undefined) {
    return true;
  }
  return Object.values(schema).some(containsFile);
}

/** A file's schema in plain form, independent of the library that wrote it. */
export function fileJsonSchema(schema: JsonSchema, { contentType }: FileSpec): JsonSchema {
  return {
    type: "string",
    format: "binary",
    ...(contentType !== undefined && { contentMediaType: contentType }),
    ...annotations(schema),
  };
}

function annotations({ title, description }: JsonSchema): JsonSchema {
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
  };
}

export function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
