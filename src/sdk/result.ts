/** Compiles the `output` of an endpoint: its JSON Schema, and whether it is a file. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { FileSpec, JsonSchema } from "../protocol/manifest.ts";
import { acceptsUndefined } from "./arguments.ts";
import { containsFile, fileJsonSchema, fileSpecOf } from "./file-json-schema.ts";
import { isStandardSchema, jsonSchemaOf, type OutputSchema } from "./schema.ts";

export interface ResultDescription {
  readonly jsonSchema: JsonSchema;
  readonly file: FileSpec | undefined;
  /** Undefined when the endpoint declares no output. */
  readonly schema: StandardSchemaV1 | undefined;
}

/** Compiles `output`. Rejects with an `Error` whose message says what is wrong with it. */
export async function describeResult(output: OutputSchema): Promise<ResultDescription> {
  if (output === undefined) {
    return { jsonSchema: {}, file: undefined, schema: undefined };
  }
  if (!isStandardSchema(output)) {
    throw new Error("output must be a Standard Schema or file()");
  }
  const jsonSchema = jsonSchemaOf(output, "output");
  const file = fileSpecOf(jsonSchema);
  if (file === undefined) {
    if (containsFile(jsonSchema)) {
      throw new Error("output can be one file, not a value with files inside");
    }
    return { jsonSchema, file, schema: output };
  }
  if (await acceptsUndefined(output)) {
    throw new Error("an output that is a file cannot be optional");
  }
  return { jsonSchema: fileJsonSchema(jsonSchema, file), file, schema: output };
}
