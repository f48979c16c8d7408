/** Binding of a URL's query to the JSON of a request. */
import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { proposal } from "../../collections/nearest.ts";
import { invalidField } from "./decode.ts";
import { dotted, hasTextForm, resolveFields, sameValue, setAt, textToJson } from "./fields.ts";

/** A field whose value comes from the path. */
export interface BoundField {
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
export function bindQuery(
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
