/**
 * Standard Schema (https://standardschema.dev): the types inferred from schemas of
 * any library that implements it, and their JSON Schema.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { JsonSchema } from "../protocol/manifest.ts";
import type { StreamSchema } from "./stream.ts";

/** The vendor of `file()`. */
export const OWN_VENDOR = "tessera";

/** One schema per argument, by name. */
export type ArgumentRecord = { readonly [argument: string]: StandardSchemaV1 };

/** The type of `input`: a schema of an object, or one schema per argument. */
export type InputSchema = StandardSchemaV1 | ArgumentRecord;

/** The type of `output`. Without one, a function may return, or yield, any JSON values. */
export type OutputSchema = StandardSchemaV1 | StreamSchema | undefined;

/**
 * The arguments as a function receives them: validated, with defaults filled in.
 * Use it to annotate the parameter of a decorated method: `Input<typeof schema>`.
 */
export type Input<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : Schema extends ArgumentRecord
    ? Flatten<RequiredArguments<Schema> & OptionalArguments<Schema>>
    : never;

/** The return type of a function: the value before the output schema validates it. */
export type Output<Schema extends OutputSchema> =
  Schema extends StreamSchema<infer Piece>
    ? AsyncIterable<StandardSchemaV1.InferInput<Piece>>
    : Schema extends StandardSchemaV1
      ? StandardSchemaV1.InferInput<Schema>
      : unknown;

/** What a function may return: its result, or a `Response` that is sent in its place. */
export type Returnable<Schema extends OutputSchema> =
  Schema extends StreamSchema<infer Piece>
    ? AsyncIterable<StandardSchemaV1.InferInput<Piece>>
    : Schema extends StandardSchemaV1
      ? StandardSchemaV1.InferInput<Schema> | Response
      : unknown;

/** The arguments as callers send them: those with a default may be left out. */
export type Given<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Schema>
  : Schema extends ArgumentRecord
    ? Flatten<RequiredGiven<Schema> & OptionalGiven<Schema>>
    : never;

/** The result, or its pieces, as callers get it: after the output schema has validated it. */
export type Answered<Schema extends OutputSchema> =
  Schema extends StreamSchema<infer Piece>
    ? AsyncIterable<StandardSchemaV1.InferOutput<Piece>>
    : Schema extends StandardSchemaV1
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

/** The JSON Schemas of the input and the output side of a schema. */
export interface JsonSchemaSides {
  readonly input?: JsonSchema;
  readonly output?: JsonSchema;
}

/**
 * Attaches a JSON Schema (2020-12) to a schema, for libraries that cannot generate
 * it. Pass both sides if they differ; a single one is used for both. Throws a
 * `TypeError` when neither is given.
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
 * The JSON Schema of one side of a schema, as plain data without `$schema`. Throws
 * an `Error` whose message says what to do when the library cannot generate one.
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
    const file = fileWithin(schema);
    if (file !== undefined) {
      throw new Error(
        `"${file}" is a file() inside a schema of ${standard.vendor}, which knows only its own: ` +
          `write z.file() there, or name each argument: input: { ${file}: file(), … }`,
        { cause: err },
      );
    }
    throw new Error(
      `no JSON Schema can be made of the ${side} side of a schema of ${standard.vendor} ` +
        `(${detail}); change it, or wrap it: withJsonSchema(schema, { input, output })`,
      { cause: err },
    );
  }
  const { $schema: _, "~standard": __, ...plain } = JSON.parse(JSON.stringify(converted));
  return plain;
}

/** The first member of an object's schema that is a `file()` of ours; undefined: it has none. */
function fileWithin(schema: StandardSchemaV1): string | undefined {
  const { shape = {} } = schema as { readonly shape?: Readonly<Record<string, unknown>> };
  const found = Object.entries(shape).find(
    ([, member]) => isStandardSchema(member) && member["~standard"].vendor === OWN_VENDOR,
  );
  return found?.[0];
}

const VALIBOT_HINT = ", or toStandardJsonSchema(schema) of @valibot/to-json-schema";

/** The dotted path of an issue, such as `texts.0`; empty for the whole value. */
export function issuePath(issue: StandardSchemaV1.Issue, prefix = ""): string {
  let path = prefix;
  for (const segment of issue.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    path = path === "" ? String(key) : `${path}.${String(key)}`;
  }
  return path;
}
