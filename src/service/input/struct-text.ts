/**
 * The JSON text of arguments that came as a protobuf `Struct`, whose numbers are doubles. What a
 * double has rounded on its way is not told from what it has not, so integers beyond 2^53 are
 * refused: as a body of JSON they arrive as they were sent.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { problem } from "../../errors.ts";

/** The largest integer of 64 bits, above which a number is meant to be a float. */
const MAX_INTEGER = 2 ** 64;

/**
 * Throws ARGUMENTS_INVALID.
 *
 * @param constants whether `NaN` and the infinities may be written as Python does
 */
export function textOfStruct(values: JsonObject, constants: boolean): string {
  return textOf(values, constants, "");
}

function textOf(value: JsonValue, constants: boolean, path: string): string {
  if (typeof value === "number") {
    return textOfNumber(value, constants, path);
  }
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value);
  }
  const at = (name: string | number): string => (path === "" ? String(name) : `${path}.${name}`);
  if (Array.isArray(value)) {
    return `[${value.map((each, index) => textOf(each, constants, at(index))).join(",")}]`;
  }
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${textOf(member, constants, at(name))}`,
  );
  return `{${members.join(",")}}`;
}

function textOfNumber(value: number, constants: boolean, path: string): string {
  if (Object.is(value, -0)) {
    return "-0.0";
  }
  const size = Math.abs(value);
  if (size > Number.MAX_SAFE_INTEGER && size <= MAX_INTEGER) {
    throw refused(path, `is ${value}, and a Struct rounds integers beyond 2^53`);
  }
  if (!Number.isFinite(value) && !constants) {
    throw refused(path, `is ${value}, which JSON has no number for`);
  }
  return String(value);
}

function refused(field: string, description: string): Error {
  const remedy = "send the arguments as a body of JSON";
  return problem(
    "ARGUMENTS_INVALID",
    `argument ${JSON.stringify(field)} ${description}: ${remedy}`,
    {
      violations: [{ field, description: `${description}: ${remedy}` }],
    },
  );
}
