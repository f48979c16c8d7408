/**
 * Reads arguments that came as one JSON object: its bounds, its syntax, files in it as `data:`
 * URLs, and its schema. What goes on to the worker is the text as it came, or pieces of it put
 * together, so that every number arrives as it was sent; values are made to be checked, and
 * dropped. It waits for nothing and keeps nothing, so that it runs on the serving thread for small
 * bodies and on another for large ones (`threads.ts`).
 *
 * Small bodies are parsed whole. Of large ones, the scan alone checks what it can
 * (`json-shape.ts`), and the rest is parsed, up to a bound. Of an endpoint with a root argument, it
 * tells the body that is that argument from one that names it.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { textBetween } from "../../collections/bytes.ts";
import { parseLenient } from "../../collections/exact-json.ts";
import { faultOfJson, MAX_JSON_VALUES, tooMany } from "../../collections/json-bounds.ts";
import type { JsonShape } from "../../collections/json-kinds.ts";
import {
  JsonFault,
  type ScannedJson,
  type ScannedMember,
  scanJson,
} from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest, FileArgument, JsonSchema } from "../../protocol/manifest.ts";
import type { FileValue, Payload } from "../../protocol/messages.ts";
import { refuseCharset } from "./charset.ts";
import { fileFromDataUrl, fileViolation, type GivenFile } from "./file.ts";
import { type FormTexts, fieldsOfForm } from "./form-fields.ts";
import { type JsonFields, textOfFields } from "./json-fields.ts";
import { countsObjects, shapeOf, takesAnything } from "./json-shape.ts";
import { isFormType, isJsonType, mediaTypeOf, typeTaken } from "./media-type.ts";
import { arrayArguments, arrayFile, arrayText } from "./number-array-file.ts";
import {
  createSchemaCheck,
  type Faults,
  MAX_DESCRIBED_VIOLATIONS,
  NO_FAULTS,
  type SchemaCheck,
} from "./schema-check.ts";
import { textOfStruct } from "./struct-text.ts";

/**
 * JSON that is read on the serving thread: longer bodies are read on another, because the worst
 * of this length takes a millisecond and the worst of 4 MiB a tenth of a second.
 */
export const MAX_JSON_BYTES_IN_PLACE = 65_536;

/** What a reader knows of its endpoint. */
export type ReadEndpoint = Pick<
  EndpointManifest,
  "name" | "kind" | "input" | "check" | "json" | "files" | "arrays" | "rootArgument"
>;

/** Arguments whose files are in memory. */
export interface ReadPayload {
  readonly json: string;
  readonly files: readonly FileValue[];
  /** Arguments as arrays of numbers, to be sent to the worker behind the files. */
  readonly arrays?: readonly FileValue[];
  /** The body itself, where it is the JSON and was read on another thread; `json` is then empty. */
  readonly jsonBytes?: Uint8Array;
}

/** Arguments whose JSON is perhaps the body itself. */
interface ReadPart {
  /** Undefined for that of the body. */
  readonly text: string | undefined;
  readonly files: readonly FileValue[];
  readonly arrays?: readonly FileValue[];
}

/** Arguments that are no files, and what is wrong with them. */
export interface CheckedFields {
  readonly fields: JsonFields;
  readonly faults: Faults;
}

/** Text in which a number may be that a double does not hold; most texts have none. */
const MAYBE_INEXACT = /\d(?:\d{15}|[eE]\+?\d{3})/;

/** Keywords of the schema of all arguments beside which each one can be checked on its own. */
const SEPARATE = new Set([
  ...["type", "properties", "required", "additionalProperties", "$defs", "definitions"],
  ...["title", "description", "$schema", "default", "examples", "$comment"],
]);

/** A reference that may be to arguments, by which the check of one is part of the check of another. */
const REFERS_TO_ARGUMENTS = /"\$(?:ref|dynamicRef|recursiveRef)":"(?!#\/(?:\$defs|definitions)\/)/;

/** Arguments that the scan checks, and the check of the others. */
interface SeparateArguments {
  readonly shapes: ReadonlyMap<string, JsonShape>;
  /** Those that are read as arrays of numbers where they can be. */
  readonly arrays: ReadonlySet<string>;
  readonly check: SchemaCheck;
  /** The check of those that a scan may check, and has not found to fit. */
  readonly unfit: SchemaCheck;
}

/** Reads objects of arguments of one endpoint. */
export class ObjectReader {
  readonly #endpoint: ReadEndpoint;
  readonly #checkTimeoutMs: number | undefined;
  #compiled: SchemaCheck | undefined;
  #separate: SeparateArguments | undefined;

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

  /**
   * Reads JSON.
   *
   * @param isNamed whether it is an object of arguments by name in any case, also where a body may
   * be the value of one argument. Throws BODY_MALFORMED or ARGUMENTS_INVALID.
   */
  read(data: Uint8Array, isNamed = false): ReadPayload {
    const { text = textBetween(data, 0, data.length), ...files } = this.readPart(data, isNamed);
    return { json: text, ...files };
  }

  /** The same; `text` is undefined where it is the body itself. */
  readPart(data: Uint8Array, isNamed: boolean): ReadPart {
    if (!isUtf8(data)) {
      throw problem("BODY_MALFORMED", "the body is not UTF-8, which JSON has to be");
    }
    const { files, rootArgument } = this.#endpoint;
    const isWhole = rootArgument === undefined && Object.keys(files).length === 0;
    return isWhole && data.length <= MAX_JSON_BYTES_IN_PLACE
      ? this.#readSmall(data)
      : this.#readScanned(data, this.#scan(data), isNamed);
  }

  /** A body that is parsed whole and passes on as it is. */
  #readSmall(data: Uint8Array): ReadPart {
    const fault = faultOfJson(data);
    if (fault !== undefined) {
      throw problem("BODY_MALFORMED", `the body ${fault}`);
    }
    const text = textBetween(data, 0, data.length);
    const value = parsed(text);
    if (value === undefined || (!this.#isPython && MAYBE_INEXACT.test(text))) {
      return this.#readScanned(data, this.#scan(data), true);
    }
    this.#refuseFaults(this.compile()(objectOf(value), text));
    return { text, files: [] };
  }

  #readScanned(data: Uint8Array, scanned: ScannedJson, isNamed: boolean): ReadPart {
    const isRoot = !isNamed && isRootValue(this.#endpoint, scanned);
    const { rootArgument: root = "" } = this.#endpoint;
    const members = isRoot ? [{ ...scanned, name: root }] : membersOf(data, scanned);
    this.#refuseInexact(members);
    const isFile = ({ name }: ScannedMember) => Object.hasOwn(this.#endpoint.files, name);
    const values = members.filter((member) => !isFile(member));
    const files = members.filter(isFile);
    const faults = this.#check(data, values);
    const arrays = isRoot ? [] : values.flatMap(({ array }) => array ?? []);
    const isWhole = arrays.length === 0 && Object.keys(this.#endpoint.files).length === 0;
    if (isWhole) {
      this.#refuseFaults(faults);
      return isRoot
        ? { text: `{${JSON.stringify(root)}:${textBetween(data, 0, data.length)}}`, files: [] }
        : { text: undefined, files: [] };
    }
    const given = this.#filesIn(data, files);
    let index = [...given.values()].flat().length;
    const fields: JsonFields = new Map(
      values.map(({ name, start, end, array }) => [
        name,
        array === undefined ? textBetween(data, start, end) : arrayText(index++),
      ]),
    );
    const { json: text, files: taken } = this.withFiles({ fields, faults }, given);
    return { text, files: taken, ...(arrays.length > 0 && { arrays: arrays.map(arrayFile) }) };
  }

  /** Reads arguments whose numbers are doubles. Throws ARGUMENTS_INVALID. */
  readStruct(values: JsonObject): ReadPayload {
    return this.read(Buffer.from(textOfStruct(values, this.#isPython)), true);
  }

  /**
   * Reads the texts of a form, of whose files `violations` are known. Throws ARGUMENTS_INVALID or
   * BODY_MALFORMED.
   */
  readTexts(texts: FormTexts, violations: readonly FieldViolation[]): CheckedFields {
    const { fields, violations: others } = fieldsOfForm(this.#endpoint, texts);
    this.refuse([...violations, ...others]);
    const data = Buffer.from(textOfFields(fields));
    const members = membersOf(data, this.#scan(data));
    this.#refuseInexact(members);
    return { fields, faults: this.#check(data, members) };
  }

  /** Reads arguments that a file comes beside. Throws ARGUMENTS_INVALID. */
  readFields(values: JsonObject): CheckedFields {
    const fields: JsonFields = new Map(
      Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]),
    );
    const data = Buffer.from(textOfFields(fields));
    const faults = this.#check(data, membersOf(data, this.#scan(data)));
    this.#refuseFaults(faults);
    return { fields, faults };
  }

  /** Puts files into the fields as indices. Throws ARGUMENTS_INVALID for what does not fit. */
  withFiles<File extends GivenFile>(
    { fields, faults }: CheckedFields,
    given: ReadonlyMap<string, readonly File[]>,
  ): { readonly json: string; readonly files: readonly File[] } {
    const violations = [...faults.violations];
    const files: File[] = [];
    for (const [name, argument] of Object.entries(this.#endpoint.files)) {
      const list = given.get(name);
      const violation = fileViolation(argument, list);
      if (violation !== undefined) {
        violations.push({ field: name, description: violation });
      } else if (list) {
        const indices = list.map((file) => files.push(named(file, argument)) - 1);
        fields.set(name, JSON.stringify(argument.array ? indices : (indices[0] ?? null)));
      }
    }
    const undescribed = faults.count - faults.violations.length;
    this.refuse(violations, violations.length + undescribed);
    return { json: textOfFields(fields), files };
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

  get #isPython(): boolean {
    return this.#endpoint.json === "python";
  }

  #scan(data: Uint8Array): ScannedJson {
    const isLarge = data.length > MAX_JSON_BYTES_IN_PLACE;
    const { shapes, arrays } = (isLarge ? this.#separately() : undefined) ?? {};
    const { rootArgument = "" } = this.#endpoint;
    try {
      return scanJson(data, {
        constants: this.#isPython,
        shapes,
        shape: shapes?.get(rootArgument),
        arrays,
      });
    } catch (err) {
      throw err instanceof JsonFault ? problem("BODY_MALFORMED", `the body ${err.message}`) : err;
    }
  }

  #refuseFaults({ violations, count }: Faults): void {
    this.refuse(violations, count);
  }

  /** Throws for a number that the service would get as another one. */
  #refuseInexact(members: readonly ScannedMember[]): void {
    if (this.#isPython) {
      return;
    }
    this.refuse(
      members.flatMap(({ name, inexact }) =>
        inexact === undefined
          ? []
          : [
              {
                field: name,
                description: `has ${inexact.slice(0, 64)}, which is no number of JavaScript: send it as a text`,
              },
            ],
      ),
    );
  }

  /** Checks the members that are no files; those that a scan has checked are not parsed. */
  #check(data: Uint8Array, members: readonly ScannedMember[]): Faults {
    const isLarge = data.length > MAX_JSON_BYTES_IN_PLACE;
    const separate = isLarge ? this.#separately() : undefined;
    const rest = members.filter(({ isFit }) => !isFit);
    if (rest.some(({ hasConstants }) => hasConstants)) {
      // No validator knows such numbers: the worker decides.
      return NO_FAULTS;
    }
    const counted = members.filter(({ isFit, name }) => {
      const shape = separate?.shapes.get(name);
      return !isFit || (shape !== undefined && countsObjects(shape));
    });
    const objects = counted.reduce((sum, member) => sum + member.objects, members.length);
    if (isLarge && objects > MAX_JSON_VALUES) {
      throw problem("BODY_MALFORMED", `the body ${tooMany(MAX_JSON_VALUES)}`);
    }
    const values: JsonObject = Object.create(null);
    for (const { name, start, end, isFit } of members) {
      values[name] = isFit ? null : (parsed(textBetween(data, start, end)) ?? null);
    }
    if (separate === undefined || rest.length === members.length) {
      return this.compile()(values, isLarge ? textBetween(data, 0, data.length) : undefined);
    }
    const others = separate.check(values);
    const unfit = rest.filter(({ name }) => separate.shapes.has(name));
    if (unfit.length === 0) {
      return others;
    }
    const faults = separate.unfit(
      Object.fromEntries(unfit.map(({ name }) => [name, values[name]])),
    );
    return {
      count: others.count + faults.count,
      violations: [...others.violations, ...faults.violations],
    };
  }

  /** The arguments that a scan can check, and the check of the others; undefined where there are none. */
  #separately(): SeparateArguments | undefined {
    if (this.#separate === undefined) {
      const { check: schema = this.#endpoint.input, name, json, files } = this.#endpoint;
      const properties = Object.entries((schema.properties ?? {}) as JsonSchema);
      const isSeparate =
        Object.keys(schema).every((keyword) => SEPARATE.has(keyword)) &&
        !REFERS_TO_ARGUMENTS.test(JSON.stringify(schema));
      const shapes = new Map<string, JsonShape>();
      for (const [argument, property] of isSeparate ? properties : []) {
        const shape = shapeOf(property, schema);
        if (shape !== undefined) {
          shapes.set(argument, shape);
        }
      }
      const described = (input: JsonSchema) =>
        createSchemaCheck({ name, json, files, input }, this.#checkTimeoutMs);
      const others = properties.map(([argument, property]) => [
        argument,
        shapes.has(argument) ? true : property,
      ]);
      const ofShapes = properties.filter(([argument]) => shapes.has(argument));
      const alone = { ...schema, required: [], additionalProperties: true };
      let unfit: SchemaCheck | undefined;
      const arrays = arrayArguments(this.#endpoint).filter((argument) => {
        const shape = shapes.get(argument);
        return shape !== undefined && takesAnything(shape);
      });
      this.#separate = {
        ...{ shapes, arrays: new Set(arrays) },
        check: described({ ...schema, properties: Object.fromEntries(others) }),
        // Most callers send what fits.
        unfit: (given, text) => {
          unfit ??= described({ ...alone, properties: Object.fromEntries(ofShapes) });
          return unfit(given, text);
        },
      };
    }
    return this.#separate.shapes.size === 0 ? undefined : this.#separate;
  }

  /** The files that are in JSON, as `data:` URLs; `null` means no file, where that is allowed. */
  #filesIn(data: Uint8Array, members: readonly ScannedMember[]): Map<string, FileValue[]> {
    const given = new Map<string, FileValue[]>();
    const violations: FieldViolation[] = [];
    for (const { name, start, end } of members) {
      const value = parsed(textBetween(data, start, end));
      if (value === null && this.#endpoint.files[name]?.required === false) {
        continue;
      }
      const list: FileValue[] = [];
      for (const each of Array.isArray(value) ? value : [value]) {
        const file = fileFromDataUrl(each);
        if (typeof file === "string") {
          violations.push({ field: name, description: file });
        } else {
          list.push(file);
        }
      }
      given.set(name, list);
    }
    this.refuse(violations);
    return given;
  }
}

/** The file with its type as the argument, or else the registry, names it. */
function named<File extends GivenFile>(file: File, { contentType: range }: FileArgument): File {
  const contentType = typeTaken(range, file.contentType) ?? file.contentType;
  return contentType === file.contentType ? file : { ...file, contentType };
}

/** The members of an object, each name once. */
function membersOf(data: Uint8Array, { members, start }: ScannedJson): ScannedMember[] {
  if (members === undefined) {
    throw notObject(KINDS[String.fromCharCode(data[start] ?? 0)] ?? "a number");
  }
  return [...new Map(members.map((member) => [member.name, member])).values()];
}

/** The value of a text; undefined for what `JSON.parse` does not take. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function objectOf(value: JsonValue): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notObject(
      Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`,
    );
  }
  return value;
}

const KINDS: Readonly<Record<string, string>> = {
  "[": "an array",
  '"': "a string",
  n: "null",
  t: "a boolean",
  f: "a boolean",
};

function notObject(kind: string): Error {
  return problem(
    "BODY_MALFORMED",
    `the body must be a JSON object of arguments by name, such as {"text": "…"}; it is ${kind}`,
  );
}

// Validates arguments stored under one revision of a service against another revision.

/** What is wrong with stored arguments; undefined when they fit. */
function storedViolation(
  { files: arguments_ }: Pick<EndpointManifest, "files">,
  check: SchemaCheck,
  payload: Payload,
): FieldViolation | undefined {
  const { value, isExact } = parseLenient(payload.json);
  const fields = value as Record<string, unknown>;
  const used = new Set<number>();
  for (const [name, argument] of Object.entries(arguments_)) {
    const given = Object.hasOwn(fields, name) ? [fields[name]].flat() : undefined;
    delete fields[name];
    const files = given?.map((index) => payload.files[Number(index)]);
    if (files?.some((file) => file === undefined)) {
      return { field: name, description: "must be a file" };
    }
    const description = fileViolation(
      argument,
      files?.filter((file) => file !== undefined),
    );
    if (description !== undefined) {
      return { field: name, description };
    }
    for (const index of given ?? []) {
      used.add(Number(index));
    }
  }
  // No validator knows the numbers of Python that JSON does not have.
  const [first] = isExact ? check(fields).violations : [];
  if (first === undefined && used.size < payload.files.length) {
    return { field: "", description: "have a file where none is taken" };
  }
  return first;
}

// Root arguments: an endpoint may say that the whole body is the value of its one argument
// (`rootArgument` of the manifest). An object with that argument alone is read by name where it
// cannot be the value, because that is a text, a number, a list or a file; an argument that may be
// an object gets every object as it was sent.

type RootEndpoint = Pick<EndpointManifest, "input" | "files" | "rootArgument">;

/** Bytes of a body that are looked at to tell a file from arguments by name. */
const MAX_PREFIX_BYTES = 256;
/** Longest URL that is told from a file. */
const MAX_URL_BYTES = 2_048;

/** The value of a root argument that is a text or a file; undefined for every other body. */
export function bareBody(
  { input, files, rootArgument: name }: RootEndpoint,
  { contentType, data }: { readonly contentType: string; readonly data: Uint8Array },
): { readonly name: string; readonly value: string | FileValue } | undefined {
  if (name === undefined) {
    return undefined;
  }
  const mediaType = mediaTypeOf(contentType);
  if (isFormType(mediaType)) {
    return undefined;
  }
  if (Object.hasOwn(files, name)) {
    return isNamedFile(name, mediaType, data)
      ? undefined
      : { name, value: fileOf(name, { contentType, data }) };
  }
  const properties = (input.properties ?? {}) as { readonly [name: string]: { type?: unknown } };
  const isJson =
    isJsonType(mediaType) && /^\s*["{]/.test(textOf(data.subarray(0, MAX_PREFIX_BYTES)));
  if (properties[name]?.type !== "string" || isJson) {
    return undefined;
  }
  refuseCharset(contentType);
  if (!isUtf8(data)) {
    throw problem("BODY_MALFORMED", "the body is not UTF-8, which text has to be");
  }
  return { name, value: textOf(data) };
}

/** Whether a body of JSON is the value of the root argument, rather than the arguments by name. */
function isRootValue(
  { input, files, rootArgument: name }: RootEndpoint,
  { members }: Pick<ScannedJson, "members">,
): boolean {
  if (name === undefined) {
    return false;
  }
  const isNamed = members?.length === 1 && members[0]?.name === name;
  if (Object.hasOwn(files, name)) {
    return !isNamed;
  }
  const properties = (input.properties ?? {}) as { readonly [name: string]: JsonSchema };
  return !isNamed || mayBeObject(properties[name] ?? {});
}

function mayBeObject({ type, anyOf }: JsonSchema): boolean {
  if (type !== undefined) {
    return [type].flat().includes("object");
  }
  return !Array.isArray(anyOf) || anyOf.some((each: JsonSchema) => mayBeObject(each));
}

/** True for JSON with the file as a `data:` URL. Some clients call every file JSON. */
function isNamedFile(name: string, mediaType: string, data: Uint8Array): boolean {
  const start = textOf(data.subarray(0, MAX_PREFIX_BYTES)).replaceAll(/\s/g, "");
  return isJsonType(mediaType) && start.startsWith(`{${JSON.stringify(name)}:"data:`);
}

function fileOf(
  name: string,
  { contentType, data }: { readonly contentType: string; readonly data: Uint8Array },
): FileValue {
  const isUntold = contentType === "" || isJsonType(mediaTypeOf(contentType));
  if (isUntold && data.length <= MAX_URL_BYTES && /^https?:\/\/\S+$/.test(textOf(data))) {
    const description = "is a URL, and files are not fetched from URLs: send the file itself";
    throw problem("ARGUMENTS_INVALID", `argument ${JSON.stringify(name)} ${description}`, {
      violations: [{ field: name, description }],
    });
  }
  return { contentType: isUntold ? "application/octet-stream" : contentType, data };
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
