import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Violation } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../sdk/manifest.ts";

/** What is wrong with the arguments that are not files. */
export type SchemaCheck = (values: object) => readonly Violation[];

/** Compiles the endpoint's input schema; file arguments are checked elsewhere. */
export function createSchemaCheck(endpoint: EndpointManifest): SchemaCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, validateFormats: true });
  // The package is CommonJS: its default export is the module.
  (formats as unknown as typeof formats.default)(ajv, { mode: "fast" });
  const validate = ajv.compile(withoutFiles(endpoint));
  return (values) => (validate(values) ? [] : (validate.errors ?? []).map(toViolation));
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
