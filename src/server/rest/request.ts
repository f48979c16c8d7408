/**
 * Request transcoding: binds path, query and body of an HTTP request to one
 * request message, and the two headers that set fields, `Idempotency-Key` and `If-Match`.
 *
 * All of them are put into one JSON object, which is then decoded, so every
 * rule of the proto JSON mapping holds for all of them. Path variables take
 * precedence: a query or body that contradicts them is refused, one that
 * agrees is accepted.
 */
import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { proposal } from "../../collections/nearest.ts";
import { problem } from "../../errors.ts";
import { refuseCharset } from "../../service/input/charset.ts";
import { isObject, parseJson } from "../http/json.ts";
import { maxValuesOf } from "../http/large-json.ts";
import type { Binding } from "./binding.ts";
import { decode, invalidField } from "./decode.ts";
import {
  dotted,
  hasTextForm,
  resolveFields,
  sameValue,
  setAt,
  textToJson,
  valueAt,
} from "./fields.ts";
import { bindKey } from "./idempotency-key.ts";
import { bindVersion } from "./if-match.ts";
import type { PathValue } from "./path-matching.ts";

/** The parts of a request. */
interface RequestParts {
  readonly values: readonly PathValue[];
  /** Without the question mark. */
  readonly query: string;
  readonly body: Uint8Array;
  readonly contentType: string | undefined;
  /** From the header; empty if absent. */
  readonly idempotencyKey: string;
  /** From the header of a change; empty if absent, or for a read. */
  readonly ifMatch: string;
}

/**
 * Builds the request message.
 * Errors: REQUEST_INVALID, BODY_MALFORMED, CONTENT_TYPE_UNSUPPORTED, VERSION_CONFLICT.
 */
export function bindRequest(binding: Binding, parts: RequestParts): Message {
  const { input } = binding.method;
  const { kind, field } = binding.body;
  if (kind === "none" && parts.body.length > 0) {
    throw invalidField("", "this call takes no body");
  }
  if (kind === "raw" && field === undefined) {
    refuseQuery(parts.query);
    return httpBody(parts);
  }
  const json = kind === "json" ? jsonBody(parts, binding) : {};
  const bound = parts.values.map(({ variable, text }): BoundField => {
    const fields = binding.fields.get(variable) ?? [];
    return { fields, value: textToJson(fields.at(-1) as DescField, text) };
  });
  for (const one of bound) {
    bindPath(json, one);
  }
  if (parts.query !== "") {
    const body = kind === "none" ? "" : (field?.name ?? "*");
    bindQuery(json, parts.query, { input, body }, bound);
  }
  if (parts.idempotencyKey !== "") {
    bindKey(json, parts.idempotencyKey, binding.key);
  }
  if (parts.ifMatch !== "") {
    bindVersion(json, parts.ifMatch, binding.expected);
  }
  const message = decode(input, json);
  if (kind === "raw" && field !== undefined && (parts.body.length > 0 || parts.contentType)) {
    setRaw(message, field, httpBody(parts));
  }
  return message;
}

function refuseQuery(query: string): void {
  const [name] = new URLSearchParams(query).keys();
  if (name !== undefined) {
    throw invalidField(name, "unknown query parameter");
  }
}

function jsonBody(
  { body, contentType }: RequestParts,
  { body: { field }, method }: Binding,
): JsonObject {
  if (body.length === 0) {
    return {};
  }
  refuseCharset(contentType ?? "");
  if (!isJson(contentType)) {
    const given = contentType === undefined ? "is missing" : `"${contentType}" is not read here`;
    throw problem(
      "CONTENT_TYPE_UNSUPPORTED",
      `the content type ${given}; send JSON as application/json`,
    );
  }
  const value = parseJson(body, maxValuesOf(method.input));
  if (field !== undefined) {
    return { [field.name]: value };
  }
  if (!isObject(value)) {
    throw problem("BODY_MALFORMED", "the body must be a JSON object");
  }
  return value;
}

/** Whether a body of this type is read as JSON. */
export function isJson(contentType: string | undefined): boolean {
  return /^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.test(
    contentType ?? "",
  );
}

function bindPath(json: JsonObject, { fields, value }: BoundField): void {
  const field = fields.at(-1) as DescField;
  const given = valueAt(json, fields);
  if (given !== undefined && !sameValue(field, given, value)) {
    throw invalidField(dotted(fields), "contradicts the path");
  }
  setAt(json, fields, value);
}

function httpBody({ body, contentType }: RequestParts): Message {
  return create(HttpBodySchema, {
    contentType: contentType ?? "application/octet-stream",
    data: body,
  });
}

function setRaw(message: Message, field: DescField, value: Message): void {
  const target = message as unknown as { [localName: string]: unknown };
  if (field.oneof === undefined) {
    target[field.localName] = value;
    return;
  }
  const { case: other } = target[field.oneof.localName] as { readonly case?: string };
  if (other !== undefined) {
    const name = field.oneof.fields.find((one) => one.localName === other)?.name ?? other;
    throw invalidField(name, `cannot be given together with ${field.name}, the body`);
  }
  target[field.oneof.localName] = { case: field.localName, value };
}

// Binding of a URL's query to the JSON of a request.

/** A field whose value comes from the path. */
interface BoundField {
  readonly fields: readonly DescField[];
  readonly value: JsonValue;
}

interface QueryRules {
  readonly input: DescMessage;
  /** Name of the top-level field that comes from the body; `*`: all fields. */
  readonly body: string;
}

/**
 * Binds the query. Errors: REQUEST_INVALID, which names the parameter, if it
 * is unknown, gives a singular field twice, or contradicts the path.
 */
function bindQuery(
  json: JsonObject,
  query: string,
  { input, body }: QueryRules,
  bound: readonly BoundField[],
): void {
  const known = () =>
    input.fields
      .filter((field) => body !== "*" && field.name !== body && hasTextForm(field))
      .map(({ name }) => name)
      .filter((name) => !bound.some((one) => dotted(one.fields) === name));
  const lists = new Map<string, JsonValue[]>();
  const seen = new Set<string>();
  for (const [name, text] of new URLSearchParams(query)) {
    const fields = resolveFields(input, name.split("."));
    const field = fields?.at(-1);
    if (fields === undefined || field === undefined) {
      throw invalidField(name, `unknown query parameter${proposal(name, known())}`);
    }
    if (!hasTextForm(field)) {
      throw invalidField(name, "cannot be given in the query");
    }
    const value = textToJson(field, text);
    const path = dotted(fields);
    const inPath = bound.find((one) => dotted(one.fields) === path);
    if (inPath !== undefined) {
      if (seen.has(path) || !sameValue(field, inPath.value, value)) {
        throw invalidField(name, "contradicts the path");
      }
    } else if (body === "*" || fields[0]?.name === body) {
      throw invalidField(name, "unknown query parameter; this field is given in the body");
    } else if (field.fieldKind === "list") {
      const items = lists.get(path) ?? [];
      items.push(value);
      lists.set(path, items);
      setAt(json, fields, items);
    } else if (seen.has(path)) {
      throw invalidField(name, "given more than once");
    } else {
      setAt(json, fields, value);
    }
    seen.add(path);
  }
}
