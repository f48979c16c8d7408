/**
 * Reads arguments that came as one JSON object: its bounds, its syntax, files in it
 * as `data:` URLs, and its schema. It waits for nothing and keeps nothing, so that it
 * runs on the serving thread for small bodies and on another for large ones
 * (`threads.ts`).
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { faultOfJson } from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest, FileArgument } from "../../protocol/manifest.ts";
import type { FileValue, Payload } from "../../protocol/messages.ts";
import { fileFromDataUrl, fileViolation } from "./file.ts";
import type { GivenFile } from "./form.ts";
import { typeTaken } from "./media-type.ts";
import { argumentsOf } from "./root.ts";
import { createSchemaCheck, MAX_DESCRIBED_VIOLATIONS, type SchemaCheck } from "./schema-check.ts";
import { storedViolation } from "./stored.ts";

/** What a reader knows of its endpoint. */
export type ReadEndpoint = Pick<EndpointManifest, "name" | "input" | "files" | "rootArgument">;

/** Arguments whose files are in memory. */
export interface ReadPayload {
  readonly json: string;
  readonly files: readonly FileValue[];
}

/** Reads objects of arguments of one endpoint. */
export class ObjectReader {
  readonly #endpoint: ReadEndpoint;
  readonly #checkTimeoutMs: number | undefined;
  #compiled: SchemaCheck | undefined;

  /** `checkTimeoutMs` as in `createSchemaCheck`. */
  constructor(endpoint: ReadEndpoint, checkTimeoutMs?: number) {
    this.#endpoint = endpoint;
    this.#checkTimeoutMs = checkTimeoutMs;
  }

  /**
   * Compiles the endpoint's schema, which otherwise the first reading does. Throws when that
   * fails or takes too long.
   */
  compile(): SchemaCheck {
    this.#compiled ??= createSchemaCheck(this.#endpoint, this.#checkTimeoutMs);
    return this.#compiled;
  }

  /** Whether a body can be the value of an argument, so that its JSON is not that of the arguments. */
  get takesRoot(): boolean {
    return this.#endpoint.rootArgument !== undefined;
  }

  /** Reads JSON. Throws BODY_MALFORMED or ARGUMENTS_INVALID. */
  read(data: Uint8Array): ReadPayload {
    if (!isUtf8(data)) {
      throw problem("BODY_MALFORMED", "the body is not UTF-8, which JSON has to be");
    }
    const fault = faultOfJson(data);
    if (fault !== undefined) {
      throw problem("BODY_MALFORMED", `the body ${fault}`);
    }
    const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
    const sent = parse(text);
    const values = argumentsOf(this.#endpoint, sent);
    return this.readObject(objectOf(values), values === sent ? text : undefined);
  }

  /** Reads a body that is the value of one argument. Throws ARGUMENTS_INVALID. */
  readBare({ name, value }: { readonly name: string; readonly value: string | FileValue }) {
    return typeof value === "string"
      ? this.readObject({ [name]: value })
      : this.assemble<FileValue>({}, new Map([[name, [value]]]));
  }

  /** `text` is the object's original JSON, which is reused when it contains no file. */
  readObject(values: JsonObject, text?: string): ReadPayload {
    const names = Object.keys(this.#endpoint.files);
    if (names.length === 0) {
      const { violations, count } = this.compile()(values, text);
      this.refuse(violations, count);
      return { json: text ?? JSON.stringify(values), files: [] };
    }
    const fields = { ...values };
    const given = new Map<string, FileValue[]>();
    const violations: FieldViolation[] = [];
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
    this.refuse(violations);
    return this.assemble(fields, given);
  }

  /** Checks fields and files, and puts the files into the fields as indices. */
  assemble<File extends GivenFile>(
    fields: JsonObject,
    given: ReadonlyMap<string, readonly File[]>,
  ): { readonly json: string; readonly files: readonly File[] } {
    const checked = this.compile()(fields);
    const violations = [...checked.violations];
    const files: File[] = [];
    for (const [name, argument] of Object.entries(this.#endpoint.files)) {
      const list = given.get(name);
      const violation = fileViolation(argument, list);
      if (violation !== undefined) {
        violations.push({ field: name, description: violation });
      } else if (list) {
        const indices = list.map((file) => files.push(named(file, argument)) - 1);
        fields[name] = argument.array ? indices : (indices[0] ?? null);
      }
    }
    const undescribed = checked.count - checked.violations.length;
    this.refuse(violations, violations.length + undescribed);
    return { json: JSON.stringify(fields), files };
  }

  /** What is wrong with arguments that were read for another revision; undefined when they fit. */
  faultOf(stored: Payload): FieldViolation | undefined {
    return storedViolation(this.#endpoint, this.compile(), stored);
  }

  /** Throws ARGUMENTS_INVALID if there are violations. */
  refuse(violations: readonly FieldViolation[], count = violations.length): void {
    const [first] = violations;
    if (first === undefined) {
      return;
    }
    const others = count > 1 ? ` (and ${count - 1} more)` : "";
    const place = first.field === "" ? "the arguments" : `argument ${JSON.stringify(first.field)}`;
    throw problem(
      "ARGUMENTS_INVALID",
      `endpoint ${this.#endpoint.name}: ${place} ${first.description}${others}`,
      { violations: violations.slice(0, MAX_DESCRIBED_VIOLATIONS) },
    );
  }
}

/** The file with its type as the argument, or else the registry, names it. */
function named<File extends GivenFile>(file: File, { contentType: range }: FileArgument): File {
  const contentType = typeTaken(range, file.contentType) ?? file.contentType;
  return contentType === file.contentType ? file : { ...file, contentType };
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch (err) {
    const detail = err instanceof Error ? err.message : String(err);
    throw problem("BODY_MALFORMED", `the body is not JSON: ${detail}`);
  }
}

function objectOf(value: JsonValue): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
    throw problem(
      "BODY_MALFORMED",
      `the body must be a JSON object of arguments by name, such as {"text": "…"}; it is ${kind}`,
    );
  }
  return value;
}
