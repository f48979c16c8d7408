/**
 * From what a caller sent to the payload that is queued and executed. All
 * that the service's JSON Schema says is checked here, before anything is
 * stored; what only the service's own code can tell (refinements,
 * transformations) it tells when the call runs.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject } from "@bufbuild/protobuf";
import { problem, type Violation } from "../../errors.ts";
import type { EndpointManifest } from "../../sdk/manifest.ts";
import type { FileValue, Payload } from "../../sdk/protocol.ts";
import { fileFromDataUrl, fileViolation } from "./file.ts";
import { type FormPart, readMultipart } from "./multipart.ts";
import { createSchemaCheck, MAX_VIOLATIONS, type SchemaCheck } from "./schema-check.ts";

/** What a caller sent: values, or the body of an HTTP request. */
export type Input =
  | { readonly case: "arguments"; readonly value: JsonObject }
  | {
      readonly case: "body";
      readonly value: { readonly contentType: string; readonly data: Uint8Array };
    }
  | { readonly case: undefined; readonly value?: undefined };

/** Reads the arguments of one endpoint. */
export class ArgumentsReader {
  readonly #endpoint: EndpointManifest;
  readonly #check: SchemaCheck;

  constructor(endpoint: EndpointManifest) {
    this.#endpoint = endpoint;
    this.#check = createSchemaCheck(endpoint);
  }

  /** Rejects with ARGUMENTS_INVALID, BODY_MALFORMED or CONTENT_TYPE_UNSUPPORTED. */
  async read(input: Input): Promise<Payload> {
    if (input.case === "arguments") {
      return this.#fromObject(input.value, undefined);
    }
    if (
      input.case === undefined ||
      (input.value.data.length === 0 && input.value.contentType === "")
    ) {
      return this.#fromObject({}, undefined);
    }
    const { contentType, data } = input.value;
    const mediaType = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
    if (mediaType === "multipart/form-data") {
      return this.#fromParts(await readMultipart(contentType, data));
    }
    if (mediaType === "application/json" || mediaType.endsWith("+json")) {
      if (!isUtf8(data)) {
        throw problem("BODY_MALFORMED", "the body is not UTF-8, which JSON has to be");
      }
      const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
      return this.#fromObject(parseObject(text), text);
    }
    throw problem(
      "CONTENT_TYPE_UNSUPPORTED",
      `content type ${JSON.stringify(mediaType)} cannot be read: send application/json, or multipart/form-data with files`,
    );
  }

  /** `text` is the JSON that the object came from: passed on as it is when no file was in it. */
  #fromObject(values: JsonObject, text: string | undefined): Payload {
    const names = Object.keys(this.#endpoint.files);
    if (names.length === 0) {
      const { violations, count } = this.#check(values, text);
      this.#refuse(violations, count);
      return { json: text ?? JSON.stringify(values), files: [] };
    }
    const fields = { ...values };
    const given = new Map<string, FileValue[]>();
    const violations: Violation[] = [];
    for (const name of names.filter((each) => Object.hasOwn(fields, each))) {
      const list = Array.isArray(fields[name]) ? fields[name] : [fields[name]];
      given.set(name, []);
      for (const value of list) {
        const file = fileFromDataUrl(value);
        if (typeof file === "string") {
          violations.push({ field: name, description: file });
        } else {
          given.get(name)?.push(file);
        }
      }
      delete fields[name];
    }
    this.#refuse(violations);
    return this.#assemble(fields, given);
  }

  #fromParts(parts: readonly FormPart[]): Payload {
    const fields: JsonObject = {};
    const given = new Map<string, FileValue[]>();
    const violations: Violation[] = [];
    for (const part of parts) {
      const { name } = part;
      const isFile = Object.hasOwn(this.#endpoint.files, name);
      if ("file" in part && isFile) {
        given.set(name, [...(given.get(name) ?? []), part.file]);
      } else if ("file" in part) {
        violations.push({
          field: name,
          description: "is a file, but this argument does not take one",
        });
      } else if (isFile) {
        const file = fileFromDataUrl(part.text);
        if (typeof file === "string") {
          violations.push({ field: name, description: file });
        } else {
          given.set(name, [...(given.get(name) ?? []), file]);
        }
      } else {
        addField(fields, part, propertyOf(this.#endpoint, name));
      }
    }
    this.#refuse(violations);
    return this.#assemble(fields, given);
  }

  #assemble(fields: JsonObject, given: ReadonlyMap<string, readonly FileValue[]>): Payload {
    const checked = this.#check(fields);
    const violations = [...checked.violations];
    const files: FileValue[] = [];
    for (const [name, argument] of Object.entries(this.#endpoint.files)) {
      const list = given.get(name);
      const violation = fileViolation(argument, list);
      if (violation !== undefined) {
        violations.push({ field: name, description: violation });
      } else if (list) {
        const indices = list.map((file) => files.push(file) - 1);
        fields[name] = argument.array ? indices : (indices[0] ?? null);
      }
    }
    const undescribed = checked.count - checked.violations.length;
    this.#refuse(violations, violations.length + undescribed);
    return { json: JSON.stringify(fields), files };
  }

  #refuse(violations: readonly Violation[], count = violations.length): void {
    const [first] = violations;
    if (first === undefined) {
      return;
    }
    const others = count > 1 ? ` (and ${count - 1} more)` : "";
    const place = first.field === "" ? "the arguments" : `argument ${JSON.stringify(first.field)}`;
    throw problem(
      "ARGUMENTS_INVALID",
      `endpoint ${this.#endpoint.name}: ${place} ${first.description}${others}`,
      { violations: violations.slice(0, MAX_VIOLATIONS) },
    );
  }
}

function parseObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (err) {
    const detail = err instanceof Error ? err.message : String(err);
    throw problem("BODY_MALFORMED", `the body is not JSON: ${detail}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
    throw problem(
      "BODY_MALFORMED",
      `the body must be a JSON object of arguments by name, such as {"text": "…"}; it is ${kind}`,
    );
  }
  return value as JsonObject;
}

type Property = { readonly type?: unknown } | undefined;

function propertyOf({ input }: EndpointManifest, name: string): Property {
  const properties = (input.properties ?? {}) as { readonly [name: string]: Property };
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/**
 * A text part is JSON, as clients of the field send it, or bare text, as
 * people type it; the argument's type decides where it could be both. Parts
 * of one name make a list.
 */
function addField(
  fields: JsonObject,
  part: { name: string; text: string },
  property: Property,
): void {
  const { name, text } = part;
  let value: unknown = text;
  try {
    const parsed: unknown = JSON.parse(text);
    value = property?.type === "string" && typeof parsed !== "string" ? text : parsed;
  } catch {
    // Not JSON: bare text.
  }
  const earlier = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (earlier === undefined) {
    const alone = property?.type === "array" && !Array.isArray(value);
    setField(fields, name, alone ? [value] : value);
  } else {
    setField(fields, name, [...(Array.isArray(earlier) ? earlier : [earlier]), value]);
  }
}

/** Also for names such as `__proto__`. */
function setField(fields: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(fields, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
