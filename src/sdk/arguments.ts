/**
 * Compiles the `input` of an endpoint into its JSON Schema, its file arguments
 * and one validation function. `input` may be a schema of an object, a record of
 * schemas, or absent.
 */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { FileArgument, JsonSchema } from "../protocol/manifest.ts";
import { containsFile, filePropertyOf, isObject } from "./file-json-schema.ts";
import { type ArgumentRecord, type InputSchema, isStandardSchema, jsonSchemaOf } from "./schema.ts";

type Result = StandardSchemaV1.Result<unknown>;

export interface Arguments {
  readonly jsonSchema: JsonSchema;
  readonly files: { readonly [argument: string]: FileArgument };
  readonly validate: (value: unknown) => Result | Promise<Result>;
}

/** Compiles `input`. Rejects with an `Error` whose message says what is wrong with it. */
export async function describeArguments(input: InputSchema | undefined): Promise<Arguments> {
  if (isStandardSchema(input)) {
    return describeObject(input);
  }
  if (input !== undefined && !isObject(input)) {
    throw new Error("input must be a schema of an object, or an object of schemas by argument");
  }
  return describeRecord(input ?? {});
}

function describeObject(schema: StandardSchemaV1): Arguments {
  const jsonSchema = jsonSchemaOf(schema, "input");
  if (jsonSchema.type !== "object") {
    const type = typeof jsonSchema.type === "string" ? jsonSchema.type : "a union or a reference";
    throw new Error(
      `input must be a schema of one object, whose members are the arguments, not ${type}`,
    );
  }
  const required = Array.isArray(jsonSchema.required) ? jsonSchema.required : [];
  const properties: Record<string, unknown> = {};
  const files: Record<string, FileArgument> = {};
  const declared = isObject(jsonSchema.properties) ? jsonSchema.properties : {};
  for (const [name, property] of Object.entries(declared)) {
    properties[checkName(name)] = takeFile(files, property, {
      name,
      required: required.includes(name),
    });
  }
  if (containsFile({ ...jsonSchema, properties: undefined })) {
    throw new Error("a file can only be an argument, or in a list that is one");
  }
  return {
    jsonSchema: { ...jsonSchema, properties },
    files,
    validate: (value) => schema["~standard"].validate(value),
  };
}

async function describeRecord(record: ArgumentRecord): Promise<Arguments> {
  const properties: Record<string, unknown> = {};
  const files: Record<string, FileArgument> = {};
  const requiredNames: string[] = [];
  for (const [name, schema] of Object.entries(record)) {
    if (!isStandardSchema(schema)) {
      throw new Error(`argument ${name} must be a Standard Schema or file(), not ${typeof schema}`);
    }
    const required = !(await acceptsUndefined(schema));
    if (required) {
      requiredNames.push(name);
    }
    const property = embed(describeArgument(name, schema), `#/properties/${pointerToken(name)}`);
    properties[checkName(name)] = takeFile(files, property, { name, required });
  }
  return {
    jsonSchema: {
      type: "object",
      properties,
      ...(requiredNames.length > 0 && { required: requiredNames }),
      additionalProperties: false,
    },
    files,
    validate: recordValidator(record),
  };
}

function describeArgument(name: string, schema: StandardSchemaV1): JsonSchema {
  try {
    return jsonSchemaOf(schema, "input");
  } catch (err) {
    throw new Error(`argument ${name}: ${err instanceof Error ? err.message : err}`, {
      cause: err,
    });
  }
}

/** True when the schema accepts a missing value. */
export async function acceptsUndefined(schema: StandardSchemaV1): Promise<boolean> {
  const result = await schema["~standard"].validate(undefined);
  return result.issues === undefined;
}

/** The property as the manifest has it. Adds it to `files` when it is a file. */
function takeFile(
  files: Record<string, FileArgument>,
  property: unknown,
  { name, required }: { readonly name: string; readonly required: boolean },
): unknown {
  const found = isObject(property) ? filePropertyOf(property) : undefined;
  if (found !== undefined) {
    files[name] = { ...found.file, required };
    return found.jsonSchema;
  }
  if (containsFile(property)) {
    throw new Error(
      `argument ${name} has a file inside; a file can only be an argument, or in a list that is one`,
    );
  }
  return property;
}

function checkName(name: string): string {
  if (name === "" || name === "__proto__" || name.length > 200) {
    throw new Error(`${JSON.stringify(name)} cannot be the name of an argument`);
  }
  return name;
}

function recordValidator(record: ArgumentRecord): Arguments["validate"] {
  const entries = Object.entries(record);
  const known = new Set(Object.keys(record));
  return (value) => {
    if (!isObject(value)) {
      return { issues: [{ message: "arguments must be an object" }] };
    }
    const issues: StandardSchemaV1.Issue[] = [];
    for (const name of Object.keys(value)) {
      if (!known.has(name)) {
        const names = [...known].join(", ") || "none";
        issues.push({ message: `no such argument (there are: ${names})`, path: [name] });
      }
    }
    const validated: Record<string, unknown> = {};
    const pending: Promise<void>[] = [];
    const take = (name: string, result: Result) => {
      if (result.issues !== undefined) {
        for (const { message, path } of result.issues) {
          issues.push({ message, path: [name, ...(path ?? [])] });
        }
      } else if (result.value !== undefined) {
        validated[name] = result.value;
      }
    };
    for (const [name, schema] of entries) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      const result = schema["~standard"].validate(given);
      if (result instanceof Promise) {
        pending.push(result.then((settled) => take(name, settled)));
      } else {
        take(name, result);
      }
    }
    const finish = (): Result => (issues.length > 0 ? { issues } : { value: validated });
    return pending.length > 0 ? Promise.all(pending).then(finish) : finish();
  };
}

/** A schema for embedding at a place inside another, with its references adjusted. */
function embed(schema: JsonSchema, place: string): JsonSchema {
  const moved = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(moved);
    }
    if (!isObject(value)) {
      return value;
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => {
        const isReference = key === "$ref" && typeof member === "string" && member.startsWith("#");
        return [key, isReference ? place + member.slice(1) : moved(member)];
      }),
    );
  };
  return moved(schema) as JsonSchema;
}

/** A name as one token of a URI-encoded JSON Pointer (RFC 6901). */
function pointerToken(name: string): string {
  return encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
}
