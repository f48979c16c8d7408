/**
 * What an argument may be made of, where the scan of JSON sees all that its schema says: arrays of
 * numbers or texts, nested or not, and what may be anything. Such an argument is not parsed to be
 * checked, so that it may have millions of values.
 */
import { type JsonLevel, KIND } from "../../collections/json-scan.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";

/** The kinds that a value may have, and what may be in it if it is an array. */
export interface ArrayShape {
  /** Bits of `KIND`. */
  readonly kinds: number;
  readonly items?: ArrayShape;
  readonly minItems: number;
  readonly maxItems: number;
}

const NUMBER = KIND.integer | KIND.wide | KIND.fraction | KIND.constant;

const KINDS: Readonly<Record<string, number>> = {
  integer: KIND.integer | KIND.wide,
  number: NUMBER,
  string: KIND.string,
  boolean: KIND.boolean,
  null: KIND.null,
  array: KIND.array,
  object: KIND.object,
};

const ANYTHING: ArrayShape = {
  kinds: NUMBER | KIND.string | KIND.boolean | KIND.null | KIND.array | KIND.object,
  minItems: 0,
  maxItems: Number.POSITIVE_INFINITY,
};

/** Keywords by which no value is refused. */
const TOLD = new Set(["title", "description", "default", "examples", "deprecated", "$comment"]);

/** The shape that a schema says; undefined for a schema that says more. */
export function shapeOf(schema: unknown): ArrayShape | undefined {
  if (schema === true || schema === undefined) {
    return ANYTHING;
  }
  if (typeof schema !== "object" || schema === null) {
    return undefined;
  }
  const said = Object.entries(schema as JsonSchema).filter(([keyword]) => !TOLD.has(keyword));
  const { type, items, minItems, maxItems, ...rest } = Object.fromEntries(said) as JsonSchema;
  const bounded = safeIntegers(type, rest);
  if (bounded === undefined && Object.keys(rest).length > 0) {
    return undefined;
  }
  const inner = shapeOf(items);
  if (inner === undefined) {
    return undefined;
  }
  return {
    kinds: bounded ?? kindsOf(type),
    ...(inner !== ANYTHING && { items: inner }),
    minItems: typeof minItems === "number" ? minItems : 0,
    maxItems: typeof maxItems === "number" ? maxItems : Number.POSITIVE_INFINITY,
  };
}

function kindsOf(type: unknown): number {
  if (type === undefined) {
    return ANYTHING.kinds;
  }
  return [type].flat().reduce<number>((kinds, each) => kinds | (KINDS[String(each)] ?? 0), 0);
}

/** Integers that are safe in JavaScript, as Zod's `int()` says it: one of few digits is within. */
function safeIntegers(type: unknown, bounds: JsonSchema): number | undefined {
  const { minimum, maximum, ...rest } = bounds;
  return type === "integer" &&
    minimum === Number.MIN_SAFE_INTEGER &&
    maximum === Number.MAX_SAFE_INTEGER &&
    Object.keys(rest).length === 0
    ? KIND.integer
    : undefined;
}

/** Whether a value has the shape. A value that may have it all the same has to be parsed. */
export function fits(shape: ArrayShape, levels: readonly JsonLevel[], at = 0): boolean {
  const level = levels[at];
  if (level === undefined || (level.kinds & ~shape.kinds) !== 0) {
    return false;
  }
  const { items, minItems, maxItems } = shape;
  const saysMore = items !== undefined || minItems > 0 || maxItems !== Number.POSITIVE_INFINITY;
  if ((level.kinds & KIND.array) === 0 || !saysMore) {
    return true;
  }
  const inner = levels[at + 1];
  return (
    inner !== undefined &&
    inner.shortest >= minItems &&
    inner.longest <= maxItems &&
    (items === undefined || fits(items, levels, at + 1))
  );
}
