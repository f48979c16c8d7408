/**
 * The reader of arguments: turns a request into the payload that is queued and
 * executed. It validates everything that JSON Schema can express, before anything is
 * stored. The service's own code (refinements, transformations) validates the rest
 * when the call runs.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject } from "@bufbuild/protobuf";
import { faultOfJson } from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import { type FileKeeper, once } from "../../files/keeper.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { type FileValue, MAX_INLINE_FILE_BYTES, type Payload } from "../../protocol/messages.ts";
import { fileFromDataUrl, fileViolation } from "./file.ts";
import { type FormOptions, FormTaker, type GivenFile } from "./form.ts";
import { readMultipart } from "./multipart.ts";
import { createSchemaCheck, MAX_DESCRIBED_VIOLATIONS, type SchemaCheck } from "./schema-check.ts";
import { storedViolation } from "./stored.ts";

const JSON_TYPE = "application/json";

/** The input of a call: values, or the body of an HTTP request. */
export type CallInput =
  | { readonly case: "arguments"; readonly value: JsonObject }
  | {
      readonly case: "body";
      readonly value: { readonly contentType: string; readonly data: Uint8Array };
    }
  | { readonly case: "stream"; readonly value: FormStream }
  | { readonly case: undefined; readonly value?: undefined };

/** A body of multipart/form-data that is read as it arrives. */
export interface FormStream extends Omit<FormOptions, "keeper"> {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Reads the arguments of one endpoint. */
export class ArgumentsReader {
  readonly #endpoint: EndpointManifest;
  readonly #check: SchemaCheck;

  constructor(endpoint: EndpointManifest) {
    this.#endpoint = endpoint;
    this.#check = createSchemaCheck(endpoint);
  }

  /**
   * Reads and validates arguments. The keeper keeps large files; the caller of this
   * function must attach or release them. Throws, or rejects where there are files,
   * with ARGUMENTS_INVALID, BODY_MALFORMED, BODY_TOO_LARGE, CONTENT_TYPE_UNSUPPORTED
   * or STORAGE_UNAVAILABLE, and then has kept nothing.
   */
  read(input: CallInput, keeper: FileKeeper): Payload | Promise<Payload> {
    if (input.case === "arguments") {
      return this.#fromObject(input.value, undefined, keeper);
    }
    if (input.case === "stream") {
      const { contentType, chunks, ...limits } = input.value;
      return this.#fromForm(contentType, chunks, { ...limits, keeper });
    }
    if (
      input.case === undefined ||
      (input.value.data.length === 0 && input.value.contentType === "")
    ) {
      return this.#fromObject({}, undefined, keeper);
    }
    const { contentType, data } = input.value;
    const mediaType = contentType === JSON_TYPE ? JSON_TYPE : mediaTypeOf(contentType);
    if (mediaType === "multipart/form-data") {
      return this.#fromForm(contentType, once(data), { keeper, maxHeldBytes: data.byteLength });
    }
    if (mediaType === JSON_TYPE || mediaType.endsWith("+json")) {
      if (!isUtf8(data)) {
        throw problem("BODY_MALFORMED", "the body is not UTF-8, which JSON has to be");
      }
      const fault = faultOfJson(data);
      if (fault !== undefined) {
        throw problem("BODY_MALFORMED", `the body ${fault}`);
      }
      const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
      return this.#fromObject(parseObject(text), text, keeper);
    }
    throw problem(
      "CONTENT_TYPE_UNSUPPORTED",
      `content type ${JSON.stringify(mediaType)} cannot be read: send application/json, or multipart/form-data with files`,
    );
  }

  /** What is wrong with arguments that were read for another revision; undefined when they fit. */
  faultOf(stored: Payload): FieldViolation | undefined {
    return storedViolation(this.#endpoint, this.#check, stored);
  }

  /** `text` is the object's original JSON, which is reused when it contains no file. */
  #fromObject(
    values: JsonObject,
    text: string | undefined,
    keeper: FileKeeper,
  ): Payload | Promise<Payload> {
    const names = Object.keys(this.#endpoint.files);
    if (names.length === 0) {
      const { violations, count } = this.#check(values, text);
      this.#refuse(violations, count);
      return { json: text ?? JSON.stringify(values), files: [] };
    }
    const fields = { ...values };
    const given = new Map<string, GivenFile[]>();
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
    this.#refuse(violations);
    return keepLarge(this.#assemble(fields, given), keeper);
  }

  async #fromForm(
    contentType: string,
    chunks: AsyncIterable<Uint8Array>,
    options: FormOptions,
  ): Promise<Payload> {
    const taker = new FormTaker(this.#endpoint, options);
    const { keeper, maxHeldBytes } = options;
    try {
      await readMultipart(contentType, chunks, { taker, maxTextBytes: maxHeldBytes });
      this.#refuse(taker.violations);
      return await keepLarge(this.#assemble(taker.fields, taker.files), keeper);
    } catch (err) {
      await keeper.release({ json: "", files: taker.kept });
      throw err;
    }
  }

  #assemble(fields: JsonObject, given: ReadonlyMap<string, readonly GivenFile[]>): Payload {
    const checked = this.#check(fields);
    const violations = [...checked.violations];
    const files: GivenFile[] = [];
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

  #refuse(violations: readonly FieldViolation[], count = violations.length): void {
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

/** The media type of a content type, without parameters. */
function mediaTypeOf(contentType: string): string {
  return contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Moves large files that came as text, and so are in memory, to the keeper. */
async function keepLarge(payload: Payload, keeper: FileKeeper): Promise<Payload> {
  const files: GivenFile[] = [];
  try {
    for (const file of payload.files) {
      const large = "data" in file && file.data.byteLength > MAX_INLINE_FILE_BYTES;
      files.push(large ? await keepData(file, keeper) : file);
    }
    return { ...payload, files };
  } catch (err) {
    await keeper.release({ json: "", files });
    throw err;
  }
}

function keepData({ data, ...facts }: FileValue, keeper: FileKeeper): Promise<GivenFile> {
  return keeper.keep(facts, once(data));
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
