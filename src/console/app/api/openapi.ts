/** The parts of the platform's OpenAPI document that its reference shows: operations and schemas. */

/** What the reference shows of a JSON Schema. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  /** Values of an answer, which others may join. */
  readonly "x-extensible-enum"?: readonly unknown[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  /** Of a map: what its values are. */
  readonly additionalProperties?: boolean | Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly examples?: readonly unknown[];
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

export interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Content;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

export interface ApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
  /** The credentials that a caller may choose from; an empty entry means that the operation needs none. */
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly "x-callers": string;
}

export interface OpenApi {
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
  readonly components: object;
}

/** What a reference names, with its own members over it; anything else as it is. */
export function resolve<Value extends { readonly $ref?: string }>(
  document: OpenApi,
  { $ref, ...own }: Value,
): Omit<Value, "$ref"> {
  if ($ref === undefined) {
    return own;
  }
  const path = $ref.slice("#/".length).split("/");
  const found = path.reduce<unknown>(
    (value, key) => (value as Record<string, unknown>)[key],
    document,
  );
  return { ...(found as Value), ...own };
}

/** A field of a message, or a parameter. */
export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly description: string;
}

/** The fields of a message, of those in a list, or of the values of a map. */
export function fieldsOf(document: OpenApi, schema: Schema): readonly Field[] {
  const { properties, required = [], items, additionalProperties } = resolve(document, schema);
  if (properties !== undefined) {
    return Object.entries(properties).map(([name, field]) => ({
      name,
      schema: field,
      isRequired: required.includes(name),
      description: field.description ?? "",
    }));
  }
  const inner = items ?? additionalProperties;
  return typeof inner === "object" ? fieldsOf(document, inner) : [];
}

/** `string, up to 63 characters`, or the name of a message. */
export function typeOf(document: OpenApi, schema: Schema): string {
  const { $ref, type, items, enum: closed, anyOf, format, additionalProperties } = schema;
  const values = closed ?? schema["x-extensible-enum"];
  if ($ref !== undefined) {
    // Those that are sent have a name of their own, beside those that are answered.
    return ($ref.split("/").at(-1) ?? "").replace(/Input$/, "");
  }
  if (values !== undefined) {
    return values.join(" | ");
  }
  if (anyOf !== undefined) {
    return anyOf.map((one) => typeOf(document, one)).join(" or ");
  }
  if (type === "array") {
    return `list of ${typeOf(document, items ?? {})}`;
  }
  if (typeof additionalProperties === "object") {
    return `map of ${typeOf(document, additionalProperties)}`;
  }
  return [type ?? "any value", format, ...bounds(schema)].filter(Boolean).join(", ");
}

/** The bounds that integers have by their formats, and say nothing more. */
const BOUNDS_OF_TYPES = [-(2 ** 31), 2 ** 31 - 1, 2 ** 32 - 1];

/** Characters of a pattern that is shown; a longer one is for programs, which read the document. */
const MAX_PATTERN_CHARS = 60;

function bounds({ minimum, maximum, minLength, maxLength, ...own }: Schema) {
  const { pattern, format, contentEncoding, examples = [] } = own;
  const ofType = (bound: number | undefined) =>
    BOUNDS_OF_TYPES.includes(bound ?? 0) ? undefined : bound;
  const isTold = format !== undefined || contentEncoding !== undefined || examples.length > 0;
  return [
    range(ofType(minimum), ofType(maximum)),
    minLength === 1 && maxLength === undefined
      ? "not empty"
      : range(minLength, maxLength, " characters"),
    contentEncoding,
    examples.length > 0 && `such as ${examples.join(" or ")}`,
    pattern !== undefined && !isTold && pattern.length <= MAX_PATTERN_CHARS && `matches ${pattern}`,
  ];
}

function range(from: number | undefined, to: number | undefined, unit = ""): string {
  if (from !== undefined && to !== undefined) {
    return `${from} to ${to}${unit}`;
  }
  if (from === undefined && to === undefined) {
    return "";
  }
  return from === undefined ? `up to ${to}${unit}` : `from ${from}${unit}`;
}
