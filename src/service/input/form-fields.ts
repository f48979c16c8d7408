/**
 * Turns the texts of a form into JSON, by what the endpoint's schema says of each argument. It
 * waits for nothing and keeps nothing, so that it runs on the serving thread for small forms and
 * on another for large ones (`threads.ts`).
 */
import { MAX_JSON_VALUES, tooMany, type ValueRoom } from "../../collections/json-bounds.ts";
import { JsonFault, scanJson } from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { itemOf, mayBeJson, mayBeNumber, takesAny, takesJson, takesList } from "./form-value.ts";
import type { JsonFields } from "./json-fields.ts";

type FormEndpoint = Pick<EndpointManifest, "input" | "check" | "json">;

/** The texts of the arguments of a form, by name, each in the order of their parts. */
export type FormTexts = Map<string, string[]>;

/**
 * The JSON texts of the values by name, in which numbers are as they were sent, and what cannot be
 * one. Throws BODY_MALFORMED for JSON beyond the bounds.
 */
export function fieldsOfForm(
  endpoint: FormEndpoint,
  texts: FormTexts,
): { readonly fields: JsonFields; readonly violations: readonly FieldViolation[] } {
  return new FormFields(endpoint).of(texts);
}

class FormFields {
  readonly #endpoint: FormEndpoint;
  /** All texts of the form share the bound of one body. */
  readonly #room: ValueRoom = { values: MAX_JSON_VALUES };

  constructor(endpoint: FormEndpoint) {
    this.#endpoint = endpoint;
  }

  of(all: FormTexts) {
    const fields: JsonFields = new Map();
    const violations: FieldViolation[] = [];
    const { input } = this.#endpoint;
    for (const [name, texts] of all) {
      const property = propertyOf(input, name);
      const [first = "", ...others] = texts;
      if (takesList(property, input)) {
        const whole = others.length === 0 ? this.#wholeOf(name, first) : undefined;
        const items = (whole === undefined ? texts : []).map((text, index) =>
          this.#jsonOf(text, itemOf(property, index, input)),
        );
        fields.set(name, whole ?? `[${items.join(",")}]`);
      } else if (others.length === 0) {
        fields.set(name, this.#jsonOf(first, property, this.#checked(name)));
      } else if (takesAny(property, input)) {
        const values = texts.map((text) => this.#jsonOf(text, property));
        fields.set(name, `[${values.join(",")}]`);
      } else {
        const description = `takes one value, ${texts.length} were sent`;
        violations.push({ field: name, description });
      }
    }
    return { fields, violations };
  }

  /** The one value of an argument that may be a list; undefined where it is an item of it. */
  #wholeOf(name: string, text: string): string | undefined {
    const { input, check } = this.#endpoint;
    const property = propertyOf(input, name);
    const { values } = this.#room;
    const json = this.#jsonOf(text, property, this.#checked(name));
    const isWhole =
      json.startsWith("[") ||
      takesJson(json, property, input) ||
      takesJson(json, this.#checked(name), check ?? input);
    if (!isWhole) {
      // It is read once more, as an item.
      this.#room.values = values;
    }
    return isWhole ? json : undefined;
  }

  /** What the check says of an argument, which takes more than its description says. */
  #checked(name: string): unknown {
    const { check } = this.#endpoint;
    return check === undefined ? undefined : propertyOf(check, name);
  }

  #jsonOf(text: string, schema: unknown, checked?: unknown): string {
    const { input, check = input } = this.#endpoint;
    if (!mayBeJson(text, schema, input) && !mayBeNumber(text, checked, check)) {
      return JSON.stringify(text);
    }
    try {
      const constants = this.#endpoint.json === "python" || !/^\s*[NI]/.test(text);
      // A service in Python reads its own numbers, and any other refuses them by their name.
      this.#room.values -= scanJson(Buffer.from(text), { constants }).objects;
    } catch (err) {
      if (!(err instanceof JsonFault)) {
        throw err;
      }
      if (!err.isSyntax) {
        throw problem("BODY_MALFORMED", `the form ${err.message}`);
      }
      // Not JSON: bare text.
      return JSON.stringify(text);
    }
    if (this.#room.values < 0) {
      throw problem("BODY_MALFORMED", `the form ${tooMany(MAX_JSON_VALUES)}`);
    }
    return text.trim();
  }
}

function propertyOf(input: JsonSchema, name: string): unknown {
  const properties = (input.properties ?? {}) as { readonly [name: string]: unknown };
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}
