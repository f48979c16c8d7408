/**
 * Validates arguments against an endpoint's input schema. Validation stops at the
 * first fault, because a body of megabytes can have millions, and describing them
 * all would block every other call of the node. Only small arguments are then
 * validated again for all faults.
 *
 * Schemas come from users and can take arbitrarily long: a pattern that backtracks,
 * references that multiply. Such schemas are checked within a time limit. An
 * endpoint that has exceeded it once is validated by its worker alone, which applies
 * the same schema.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { FieldViolation } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { withinTime } from "./time-limit.ts";

/** Violations described in one answer. */
export const MAX_DESCRIBED_VIOLATIONS = 20;

/**
 * JSON of arguments whose faults are all described; for longer ones the answer names the first
 * fault only.
 */
const MAX_EXPLAINED_CHARACTERS = 65_536;

/** How long one check of arguments against a schema may take on the serving thread. */
const SCHEMA_CHECK_TIMEOUT_MS = 100;
/** How long compiling one schema may take. */
const SCHEMA_COMPILE_TIMEOUT_MS = 5_000;

/** Keywords whose cost does not follow from the size of the values. */
const UNBOUNDED =
  /"(?:pattern|patternProperties|uniqueItems|\$ref|\$dynamicRef|\$recursiveRef|unevaluated\w+)":/;

/**
 * Objects of a schema that is checked without a limit of time, against values that are short
 * enough.
 */
const MAX_SIMPLE_SCHEMA_OBJECTS = 64;
/** JSON of values that a simple schema checks without a limit of time. */
const SIMPLE_VALUES_CHARACTERS = 1024 ** 2;

/** The faults of arguments. */
export interface Faults {
  /** The number of faults found. */
  readonly count: number;
  /** The first faults, at most `MAX_DESCRIBED_VIOLATIONS`. */
  readonly violations: readonly FieldViolation[];
}

/** Validates the arguments that are not files. `text` is their JSON if it is at hand. */
export type SchemaCheck = (values: object, text?: string) => Faults;

/** Those of arguments that fit. */
export const NO_FAULTS: Faults = { count: 0, violations: [] };

/** What a check knows of its endpoint. */
type CheckedEndpoint = Pick<EndpointManifest, "name" | "input" | "check" | "json" | "files">;

/**
 * Compiles the schema by which the node checks the arguments of an endpoint, without its file
 * arguments (see `file.ts`). Throws when that fails or takes too long.
 *
 * @param timeoutMs of one check. Default: that of the serving thread, 100 ms.
 */
export function createSchemaCheck(
  endpoint: CheckedEndpoint,
  timeoutMs = SCHEMA_CHECK_TIMEOUT_MS,
): SchemaCheck {
  const schema = withoutFiles(endpoint);
  // Compiles the schema of schemas once, outside the time limit: half compiled, it stays unusable.
  metaSchemas.validateSchema({});
  const compiled = withinTime(SCHEMA_COMPILE_TIMEOUT_MS, () => compile(schema, endpoint, false));
  if (compiled === undefined) {
    throw new Error(
      `the input schema of endpoint ${endpoint.name} takes longer than ${SCHEMA_COMPILE_TIMEOUT_MS / 1_000} s to be compiled`,
    );
  }
  const { result: check } = compiled;
  const isSimple = isSimpleSchema(schema);
  let explain: ValidateFunction | undefined;
  let isTooSlow = false;
  const fits = (values: object, text: string | undefined): boolean => {
    if (isSimple && (text === undefined || text.length < SIMPLE_VALUES_CHARACTERS)) {
      return check(values);
    }
    const checked = withinTime(timeoutMs, () => check(values));
    isTooSlow = checked === undefined;
    return checked?.result ?? true;
  };
  const explained = (values: object): ErrorObject[] | undefined => {
    // Compiled outside the time limit of a check: on a busy machine that alone can take longer.
    explain ??= withinTime(SCHEMA_COMPILE_TIMEOUT_MS, () =>
      compile(schema, endpoint, true),
    )?.result;
    const validate = explain;
    const checked = validate && withinTime(timeoutMs, () => validate(values));
    return checked && (validate?.errors ?? undefined);
  };
  return (values, text) => {
    if (isTooSlow || fits(values, text)) {
      return NO_FAULTS;
    }
    let errors = check.errors ?? [];
    if ((text ?? JSON.stringify(values)).length <= MAX_EXPLAINED_CHARACTERS) {
      errors = explained(values) ?? errors;
    }
    return {
      count: errors.length,
      violations: errors.slice(0, MAX_DESCRIBED_VIOLATIONS).map(toViolation),
    };
  };
}

function isSimpleSchema(schema: JsonSchema): boolean {
  const text = JSON.stringify(schema);
  return !UNBOUNDED.test(text) && text.split("{").length <= MAX_SIMPLE_SCHEMA_OBJECTS;
}

/**
 * Checks schemas against JSON Schema itself, for all endpoints: to compile that schema for
 * each of them takes 20 times as long as most of theirs.
 */
const metaSchemas = new Ajv2020({ strict: false, logger: false });

function compile(
  schema: JsonSchema,
  { json }: CheckedEndpoint,
  allErrors: boolean,
): ValidateFunction {
  metaSchemas.validateSchema(schema, true);
  const options = { strict: false, logger: false, validateFormats: true, verbose: true } as const;
  // Python reads a number beyond the range of doubles as infinite.
  const strictNumbers = json !== "python";
  const ajv = new Ajv2020({ ...options, strictNumbers, allErrors, validateSchema: false });
  // The package is CommonJS: its default export is the module.
  (formats as unknown as typeof formats.default)(ajv, { mode: "fast" });
  return ajv.compile(schema);
}

function withoutFiles({ input: described, check: input = described, files }: CheckedEndpoint) {
  const names = new Set(Object.keys(files));
  const properties = Object.entries((input.properties ?? {}) as JsonSchema);
  const required = Array.isArray(input.required) ? input.required : [];
  return {
    ...input,
    properties: Object.fromEntries(properties.filter(([name]) => !names.has(name))),
    required: required.filter((name) => !names.has(name)),
  };
}

/** A longer pattern is not shown to who has not met it: it says nothing to a reader. */
const MAX_SHOWN_PATTERN_CHARACTERS = 80;

function toViolation(error: ErrorObject): FieldViolation {
  const { instancePath, keyword, message, params, parentSchema, propertyName } = error;
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
    case "type": {
      // A check that takes more types than the endpoint describes says which one it describes.
      const kind = [parentSchema?.describedAs ?? params.type].flat().join(" or ");
      return { field: path.join("."), description: `must be ${kind}` };
    }
    case "pattern": {
      const name = propertyName === undefined ? [] : [propertyName];
      const isShown = name.length === 0 && params.pattern.length <= MAX_SHOWN_PATTERN_CHARACTERS;
      const description =
        name.length > 0
          ? "is no name that this endpoint takes here"
          : `must have the form that the schema of this endpoint says`;
      const field = [...path, ...name].join(".");
      return { field, description: isShown ? (message ?? description) : description };
    }
    default: {
      const description = sizeText(keyword, params.limit) ?? message;
      return { field: path.join("."), description: description ?? `does not satisfy ${keyword}` };
    }
  }
}

const SIZES: Readonly<Record<string, readonly [bound: string, unit: string, units: string]>> = {
  minLength: ["at least", "character", "characters"],
  maxLength: ["at most", "character", "characters"],
  minItems: ["at least", "item", "items"],
  maxItems: ["at most", "item", "items"],
  minProperties: ["at least", "property", "properties"],
  maxProperties: ["at most", "property", "properties"],
};

/** `must have at least 1 character`; undefined for keywords that are about no size. */
function sizeText(keyword: string, limit: unknown): string | undefined {
  const [bound, unit, units] = SIZES[keyword] ?? [];
  return bound === undefined
    ? undefined
    : `must have ${bound} ${limit} ${limit === 1 ? unit : units}`;
}

/** JSON Pointer, RFC 6901. */
function unescapePointer(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~");
}
