/**
 * Schemas of any library that implements Standard Schema
 * (https://standardschema.dev): the types that flow from them, and their
 * JSON Schema.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { JsonSchema } from "../protocol/manifest.ts";

/** Arguments by name, each with a schema of its own. */
export type ArgumentRecord = { readonly [argument: string]: StandardSchemaV1 };

/** What `input` may be: a schema of an object, or a schema for each argument. */
export type InputSchema = StandardSchemaV1 | ArgumentRecord;

/** What `output` may be; without one a function may return whatever JSON can carry. */
export type OutputSchema = StandardSchemaV1 | undefined;

/**
 * The arguments as a function receives them: validated, with defaults filled
 * in. Annotates the parameter of a decorated method: `Input<typeof schema>`.
 */
export type Input<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : Schema extends ArgumentRecord
    ? Flatten<RequiredArguments<Schema> & OptionalArguments<Schema>>
    : never;

/** What a function may return: the value before the output schema has looked at it. */
export type Output<Schema extends OutputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Schema>
  : unknown;

/** The arguments as callers send them: what has a default may be left out. */
export type Given<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Schema>
  : Schema extends ArgumentRecord
    ? Flatten<RequiredGiven<Schema> & OptionalGiven<Schema>>
    : never;

/** The result as it leaves the service: the value after the output schema has looked at it. */
export type Answered<Schema extends OutputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : unknown;

type Value<Schema extends StandardSchemaV1> = StandardSchemaV1.InferOutput<Schema>;

type RequiredArguments<Schemas extends ArgumentRecord> = {
  [Name in keyof Schemas as undefined extends Value<Schemas[Name]> ? never : Name]: Value<
    Schemas[Name]
  >;
};

type OptionalArguments<Schemas extends ArgumentRecord> = {
  [Name in keyof Schemas as undefined extends Value<Schemas[Name]> ? Name : never]?: Value<
    Schemas[Name]
  >;
};

type RequiredGiven<Schemas extends ArgumentRecord> = {
  [Name in keyof Schemas as undefined extends StandardSchemaV1.InferInput<Schemas[Name]>
    ? never
    : Name]: StandardSchemaV1.InferInput<Schemas[Name]>;
};

type OptionalGiven<Schemas extends ArgumentRecord> = {
  [Name in keyof Schemas as undefined extends StandardSchemaV1.InferInput<Schemas[Name]>
    ? Name
    : never]?: StandardSchemaV1.InferInput<Schemas[Name]>;
};

type Flatten<Type> = { [Key in keyof Type]: Type[Key] };

/** JSON Schemas of both sides of a schema: what goes in, and what comes out of it. */
export interface JsonSchemaSides {
  readonly input?: JsonSchema;
  readonly output?: JsonSchema;
}

/**
 * A schema together with its JSON Schema (2020-12), for libraries that cannot
 * say it themselves. Give both sides where they differ; one stands for both.
 */
export function withJsonSchema<Schema extends StandardSchemaV1>(
  schema: Schema,
  sides: JsonSchemaSides,
): StandardSchemaV1<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>> {
  const { input = sides.output, output = sides.input } = sides;
  if (input === undefined || output === undefined) {
    throw new TypeError("withJsonSchema needs a JSON Schema of the input, the output or both");
  }
  const inner = schema["~standard"];
  const described: StandardSchemaV1.Props & StandardJSONSchemaV1.Props = {
    version: 1,
    vendor: inner.vendor,
    validate: (value, options) => inner.validate(value, options),
    jsonSchema: { input: () => ({ ...input }), output: () => ({ ...output }) },
  };
  return { "~standard": described } as StandardSchemaV1<
    StandardSchemaV1.InferInput<Schema>,
    StandardSchemaV1.InferOutput<Schema>
  >;
}

export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    return false;
  }
  const standard = (value as Partial<StandardSchemaV1>)["~standard"];
  return typeof standard === "object" && typeof standard.validate === "function";
}

/**
 * The JSON Schema of one side of a schema, as plain data without `$schema`.
 * Throws an `Error` whose message says what to do when there is none.
 */
export function jsonSchemaOf(schema: StandardSchemaV1, side: "input" | "output"): JsonSchema {
  const standard = schema["~standard"] as StandardSchemaV1.Props &
    Partial<StandardJSONSchemaV1.Props>;
  if (standard.jsonSchema === undefined) {
    const hint = standard.vendor === "valibot" ? VALIBOT_HINT : "";
    throw new Error(
      `a schema of ${standard.vendor} does not tell its JSON Schema; ` +
        `wrap it: withJsonSchema(schema, { input, output })${hint}`,
    );
  }
  let converted: Record<string, unknown>;
  try {
    converted = standard.jsonSchema[side]({ target: "draft-2020-12" });
  } catch (err) {
    const detail = err instanceof Error ? err.message : String(err);
    throw new Error(
      `no JSON Schema can be made of the ${side} side of a schema of ${standard.vendor} ` +
        `(${detail}); change it, or wrap it: withJsonSchema(schema, { input, output })`,
      { cause: err },
    );
  }
  const { $schema: _, "~standard": __, ...plain } = JSON.parse(JSON.stringify(converted));
  return plain;
}

const VALIBOT_HINT = ", or toStandardJsonSchema(schema) of @valibot/to-json-schema";

/** The path of an issue in dots, such as `texts.0`; empty for the whole. */
export function issuePath(issue: StandardSchemaV1.Issue, prefix = ""): string {
  let path = prefix;
  for (const segment of issue.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    path = path === "" ? String(key) : `${path}.${String(key)}`;
  }
  return path;
}
