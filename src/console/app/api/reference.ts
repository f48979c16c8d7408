/** The platform's OpenAPI document, as the server makes it: its operations and their schemas. */
import { queryOptions } from "@tanstack/react-query";
import { getJson } from "./get-json.ts";

/** What the reference shows of a JSON Schema. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  /** Values of an answer, which others may join. */
  readonly "x-extensible-enum"?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
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
  readonly "x-callers": string;
}

export interface OpenApi {
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
  readonly components: object;
}

/** It does not change while the server runs. */
export const reference = queryOptions({
  queryKey: ["reference"],
  queryFn: ({ signal }) => getJson("/docs.json", signal) as Promise<OpenApi>,
  staleTime: Number.POSITIVE_INFINITY,
});

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

/** `string, 1 to 63 characters`, or the name of a message with its fields. */
export function typeOf(document: OpenApi, schema: Schema): string {
  const { $ref, type, items, enum: closed, format } = schema;
  const values = closed ?? schema["x-extensible-enum"];
  if ($ref !== undefined) {
    const { properties = {} } = resolve(document, schema);
    return `${$ref.split("/").at(-1)} {${Object.keys(properties).join(", ")}}`;
  }
  if (values !== undefined) {
    return values.join(" | ");
  }
  if (type === "array") {
    return `list of ${typeOf(document, items ?? {})}`;
  }
  return [type ?? "any value", format, ...bounds(schema)].filter(Boolean).join(", ");
}

function bounds({ minimum, maximum, minLength, maxLength, pattern }: Schema) {
  return [
    range(minimum, maximum),
    range(minLength, maxLength, " characters"),
    pattern !== undefined && `matches ${pattern}`,
  ];
}

function range(from: number | undefined, to: number | undefined, unit = ""): string {
  const ends = [from !== undefined && `from ${from}`, to !== undefined && `up to ${to}`];
  const text = ends.filter(Boolean).join(" ");
  return text && `${text}${unit}`;
}
