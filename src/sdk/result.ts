/** Compiles the `output` of an endpoint: its JSON Schema, and whether it is a file or a stream. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { FileSpec, JsonSchema, StreamManifest } from "../protocol/manifest.ts";
import { acceptsUndefined } from "./arguments.ts";
import { containsFile, fileJsonSchema, fileSpecOf } from "./file-json-schema.ts";
import { isStandardSchema, jsonSchemaOf, type OutputSchema } from "./schema.ts";
import { pieceSchemaOf } from "./stream.ts";

/** A result, or one piece of a streamed one. */
export interface ResultDescription {
  readonly jsonSchema: JsonSchema;
  readonly file: FileSpec | undefined;
  /** Undefined when the endpoint declares no output. */
  readonly schema: StandardSchemaV1 | undefined;
  /** Present when a string in it stands for a value of another type, such as a date. */
  readonly quoted?: true;
  /** Present when the result is streamed. */
  readonly stream?: StreamManifest;
}

/**
 * Compiles `output`; `generates` says that the function is an async generator. Rejects with
 * an `Error` whose message says what is wrong with it.
 */
export async function describeResult(
  output: OutputSchema,
  generates = false,
): Promise<ResultDescription> {
  const piece = pieceSchemaOf(output);
  if (piece !== undefined) {
    const described = await describeValue(piece, "the output of a piece");
    return { ...described, stream: { pieces: formOf(described) } };
  }
  if (output === undefined) {
    const described = { jsonSchema: {}, file: undefined, schema: undefined };
    return generates ? { ...described, stream: { pieces: "json" } } : described;
  }
  if (generates) {
    throw new Error("the output of an async generator must be stream(schema of a piece)");
  }
  return describeValue(output, "output");
}

async function describeValue(output: unknown, what: string): Promise<ResultDescription> {
  if (!isStandardSchema(output)) {
    throw new Error(`${what} must be a Standard Schema or file()`);
  }
  const jsonSchema = jsonSchemaOf(output, "output");
  const file = fileSpecOf(jsonSchema);
  if (file === undefined) {
    if (containsFile(jsonSchema)) {
      throw new Error(`${what} can be one file, not a value with files inside`);
    }
    const quoted = VALUES.has(jsonSchema.format) && jsonSchema.type === "string";
    return { jsonSchema, file, schema: output, ...(quoted && { quoted }) };
  }
  if (await acceptsUndefined(output)) {
    throw new Error("an output that is a file cannot be optional");
  }
  return { jsonSchema: fileJsonSchema(jsonSchema, file), file, schema: output };
}

/** Formats of strings that are no texts: JSON has no other form for such values. */
const VALUES: ReadonlySet<unknown> = new Set(["date", "date-time", "duration", "time", "uuid"]);

function formOf({ file, jsonSchema, quoted }: ResultDescription): StreamManifest["pieces"] {
  if (file !== undefined) {
    return "bytes";
  }
  return jsonSchema.type === "string" && !quoted ? "text" : "json";
}
