/**
 * Checks arguments against an endpoint's input schema. The check stops at the
 * first fault, because a body of megabytes can have millions, and describing
 * them all would hold up every other call of the node. Only small arguments
 * are then checked again for everything that is wrong with them.
 *
 * Schemas come from whoever deploys, and some take longer than any node has:
 * a pattern that goes back and forth, references that multiply. What may, is
 * checked within a limit of time. An endpoint that has exceeded it once is
 * checked by its worker alone, which asks the same of the arguments.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { FieldViolation } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { withinTime } from "./time-limit.ts";

/** Violations described in one answer. */
export const MAX_VIOLATIONS = 20;

/** Arguments whose JSON is longer are told their first fault only. */
const MAX_EXPLAINED_LENGTH = 65_536;

/** Of one check, and of compiling one schema. */
const CHECK_LIMIT_MS = 100;
const COMPILE_LIMIT_MS = 5_000;

/** Keywords of which the values do not tell how long they take. */
const UNBOUNDED =
  /"(?:pattern|patternProperties|uniqueItems|\$ref|\$dynamicRef|\$recursiveRef|unevaluated\w+)":/;

/** A schema of fewer objects is checked without a limit, against values whose JSON is shorter. */
const SIMPLE_OBJECTS = 64;
const SIMPLE_VALUES_LENGTH = 1024 ** 2;

/** What is wrong with arguments. */
export interface Faults {
  /** All that were found. */
  readonly count: number;
  /** The first of them, at most `MAX_VIOLATIONS`. */
  readonly violations: readonly FieldViolation[];
}

/** Checks the arguments that are not files; `text` is their JSON, where it is there already. */
export type SchemaCheck = (values: object, text?: string) => Faults;

const NONE: Faults = { count: 0, violations: [] };

/**
 * Compiles the endpoint's input schema; file arguments are checked elsewhere.
 * Throws when that cannot be done, or not in time.
 */
export function createSchemaCheck(endpoint: EndpointManifest): SchemaCheck {
  const schema = withoutFiles(endpoint);
  const compiled = withinTime(COMPILE_LIMIT_MS, () => compile(schema, false));
  if (compiled === undefined) {
    throw new Error(
      `the input schema of endpoint ${endpoint.name} takes longer than ${COMPILE_LIMIT_MS / 1_000} s to be compiled`,
    );
  }
  const { result: check } = compiled;
  const isSimple = isSimpleSchema(schema);
  let explain: ValidateFunction | undefined;
  let isTooSlow = false;
  const fits = (values: object, text: string | undefined): boolean => {
    if (isSimple && (text === undefined || text.length < SIMPLE_VALUES_LENGTH)) {
      return check(values);
    }
    const { user: beforeUs } = process.threadCpuUsage();
    const checked = withinTime(CHECK_LIMIT_MS, () => check(values));
    // A machine that had no time for it says nothing of the schema.
    isTooSlow =
      checked === undefined &&
      process.threadCpuUsage().user - beforeUs > (CHECK_LIMIT_MS * 1_000) / 4;
    return checked?.result ?? true;
  };
  const explained = (values: object): ErrorObject[] | undefined => {
    explain ??= compile(schema, true);
    explain(values);
    return explain.errors ?? undefined;
  };
  return (values, text) => {
    if (isTooSlow || fits(values, text)) {
      return NONE;
    }
    let errors = check.errors ?? [];
    if ((text ?? JSON.stringify(values)).length <= MAX_EXPLAINED_LENGTH) {
      errors = withinTime(CHECK_LIMIT_MS, () => explained(values))?.result ?? errors;
    }
    return {
      count: errors.length,
      violations: errors.slice(0, MAX_VIOLATIONS).map(toViolation),
    };
  };
}

function isSimpleSchema(schema: JsonSchema): boolean {
  const text = JSON.stringify(schema);
  return !UNBOUNDED.test(text) && text.split("{").length <= SIMPLE_OBJECTS;
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

function toViolation({ instancePath, keyword, message, params }: ErrorObject): FieldViolation {
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
