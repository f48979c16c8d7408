/**
 * Checks arguments against an endpoint's input schema. The check stops at the
 * first fault, because a body of megabytes can have millions, and describing
 * them all would hold up every other call of the node. Only small arguments
 * are then checked again for everything that is wrong with them.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Violation } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../sdk/manifest.ts";

/** Violations described in one answer. */
export const MAX_VIOLATIONS = 20;

/** Arguments whose JSON is longer are told their first fault only. */
const MAX_EXPLAINED_LENGTH = 65_536;

/** What is wrong with arguments. */
export interface Faults {
  /** All that were found. */
  readonly count: number;
  /** The first of them, at most `MAX_VIOLATIONS`. */
  readonly violations: readonly Violation[];
}

/** Checks the arguments that are not files; `text` is their JSON, where it is there already. */
export type SchemaCheck = (values: object, text?: string) => Faults;

const NONE: Faults = { count: 0, violations: [] };

/** Compiles the endpoint's input schema; file arguments are checked elsewhere. */
export function createSchemaCheck(endpoint: EndpointManifest): SchemaCheck {
  const schema = withoutFiles(endpoint);
  const check = compile(schema, false);
  let explain: ValidateFunction | undefined;
  return (values, text) => {
    if (check(values)) {
      return NONE;
    }
    let errors = check.errors ?? [];
    if ((text ?? JSON.stringify(values)).length <= MAX_EXPLAINED_LENGTH) {
      explain ??= compile(schema, true);
      explain(values);
      errors = explain.errors ?? errors;
    }
    return {
      count: errors.length,
      violations: errors.slice(0, MAX_VIOLATIONS).map(toViolation),
    };
  };
}

function compile(schema: JsonSchema, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors, logger: false, validateFormats: true });
  // The package is CommonJS: its default export is the module.
  (formats as unknown as typeof formats.default)(ajv, { mode: "fast" });
  return ajv.compile(schema);
}

function withoutFiles({ input, files }: EndpointManifest): JsonSchema {
  const names = new Set(Object.keys(files));
  const properties = Object.entries((input.properties ?? {}) as JsonSchema);
  const required = Array.isArray(input.required) ? input.required : [];
  return {
    ...input,
    properties: Object.fromEntries(properties.filter(([name]) => !names.has(name))),
    required: required.filter((name) => !names.has(name)),
  };
}

function toViolation({ instancePath, keyword, message, params }: ErrorObject): Violation {
  const path = instancePath.split("/").slice(1).map(unescapePointer);
  switch (keyword) {
    case "required":
      return { field: [...path, params.missingProperty].join("."), description: "is required" };
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = params.additionalProperty ?? params.unevaluatedProperty;
      return {
        field: [...path, name].join("."),
        description: "is not an argument of this endpoint",
      };
    }
    case "enum":
      return {
        field: path.join("."),
        description: `must be one of ${params.allowedValues.map((value: unknown) => JSON.stringify(value)).join(", ")}`,
      };
    default:
      return { field: path.join("."), description: message ?? `does not satisfy ${keyword}` };
  }
}

/** JSON Pointer, RFC 6901. */
function unescapePointer(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~");
}
