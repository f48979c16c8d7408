/**
 * `file()`: the schema of binary input and output. It is a Standard Schema and can
 * be used wherever one can. The platform recognizes a file by its JSON Schema,
 * `{type: "string", format: "binary"}`, so zod's `z.file()` is a file too.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { sharePlace } from "../protocol/file-place.ts";
import type { FileSpec, JsonSchema } from "../protocol/manifest.ts";
import { OWN_VENDOR } from "./schema.ts";
import { unknownOption } from "./unknown.ts";

/** The bytes of a file, as a function may return them. A `Buffer` is a `Uint8Array`. */
export type Bytes = Blob | Uint8Array;

/** The options of `file()`. */
export interface FileOptions {
  /**
   * The accepted media type or range, such as `image/png` or `image/*`. Default: any.
   * A file sent without a type is accepted, and assumed to have this type unless it is
   * a range.
   */
  readonly contentType?: string;
  /** Size limit of one file in bytes. Default: the limit of the whole body. */
  readonly maxBytes?: number;
}

/** Limits on the number of files in a list. */
export interface FileListOptions {
  /** The smallest number of files. Default: 0. */
  readonly min?: number;
  /** The largest number of files. Default: no limit. */
  readonly max?: number;
}

/** A schema whose value may be left out. */
export interface OptionalSchema<In, Out> extends StandardSchemaV1<In | undefined, Out | undefined> {
  readonly "~standard": StandardSchemaV1.Props<In | undefined, Out | undefined> &
    StandardJSONSchemaV1.Props<In | undefined, Out | undefined>;
}

/** A schema of a list of files; the function receives `File[]`. */
export interface FileListSchema extends StandardSchemaV1<Bytes[], File[]> {
  readonly "~standard": StandardSchemaV1.Props<Bytes[], File[]> &
    StandardJSONSchemaV1.Props<Bytes[], File[]>;
  /** The same list, which may be left out. */
  optional(): OptionalSchema<Bytes[], File[]>;
}

/** A schema of one file; the function receives a `File`. */
export interface FileSchema extends StandardSchemaV1<Bytes, File> {
  readonly "~standard": StandardSchemaV1.Props<Bytes, File> &
    StandardJSONSchemaV1.Props<Bytes, File>;
  /** A list of such files. Throws a `TypeError` for limits that are not whole numbers. */
  array(options?: FileListOptions): FileListSchema;
  /** The same file, which may be left out. */
  optional(): OptionalSchema<Bytes, File>;
}

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+)$/;
const UNKNOWN_TYPE = "application/octet-stream";

/** The schema of a file as an argument or a result. Throws a `TypeError` for invalid options. */
export function file(options: FileOptions = {}): FileSchema {
  checkNames("file()", options, { contentType: true, maxBytes: true });
  const { contentType, maxBytes } = options;
  if (contentType !== undefined && !MEDIA_TYPE.test(contentType)) {
    throw new TypeError(
      `file(): contentType must be like image/png or image/*, not ${contentType}`,
    );
  }
  checkCount("file(): maxBytes", maxBytes);
  const spec: FileSpec = {
    ...(contentType !== undefined && { contentType: contentType.toLowerCase() }),
    ...(maxBytes !== undefined && { maxBytes }),
  };
  const validate = (value: unknown) => validateFile(value, spec);
  const jsonSchema = {
    type: "string",
    format: "binary",
    ...(spec.contentType !== undefined && { contentMediaType: spec.contentType }),
    ...(maxBytes !== undefined && { maxLength: maxBytes }),
  };
  return {
    "~standard": standard<Bytes, File>(validate, jsonSchema),
    array: (list = {}) => fileList(validate, jsonSchema, list),
    optional: () => optional<Bytes, File>(validate, jsonSchema),
  };
}

type Validate<Out> = (value: unknown) => StandardSchemaV1.Result<Out>;

function fileList(
  validateItem: Validate<File>,
  items: JsonSchema,
  options: FileListOptions,
): FileListSchema {
  checkNames("file().array()", options, { min: true, max: true });
  const { min, max } = options;
  checkCount("file().array(): min", min);
  checkCount("file().array(): max", max);
  const jsonSchema = {
    type: "array",
    items,
    ...(min !== undefined && { minItems: min }),
    ...(max !== undefined && { maxItems: max }),
  };
  const validate: Validate<File[]> = (value) => {
    if (!Array.isArray(value)) {
      return refuse("must be a list of files");
    }
    if (value.length < (min ?? 0)) {
      return refuse(`must be at least ${min} files, not ${value.length}`);
    }
    if (value.length > (max ?? Number.POSITIVE_INFINITY)) {
      return refuse(`must be at most ${max} files, not ${value.length}`);
    }
    const issues: StandardSchemaV1.Issue[] = [];
    const files: File[] = [];
    for (const [index, item] of value.entries()) {
      const result = validateItem(item);
      if (result.issues === undefined) {
        files.push(result.value);
      } else {
        issues.push(...result.issues.map(({ message }) => ({ message, path: [index] })));
      }
    }
    return issues.length > 0 ? { issues } : { value: files };
  };
  return {
    "~standard": standard<Bytes[], File[]>(validate, jsonSchema),
    optional: () => optional<Bytes[], File[]>(validate, jsonSchema),
  };
}

function optional<In, Out>(
  validate: Validate<Out>,
  jsonSchema: JsonSchema,
): OptionalSchema<In, Out> {
  return {
    "~standard": standard<In | undefined, Out | undefined>(
      (value) => (value === undefined ? { value } : validate(value)),
      jsonSchema,
    ),
  };
}

function standard<In, Out>(
  validate: Validate<Out>,
  jsonSchema: JsonSchema,
): StandardSchemaV1.Props<In, Out> & StandardJSONSchemaV1.Props<In, Out> {
  const converter = { input: () => ({ ...jsonSchema }), output: () => ({ ...jsonSchema }) };
  return { version: 1, vendor: OWN_VENDOR, validate, jsonSchema: converter };
}

function validateFile(value: unknown, spec: FileSpec): StandardSchemaV1.Result<File> {
  if (!(value instanceof Blob) && !(value instanceof Uint8Array)) {
    return refuse("must be a file");
  }
  const size = value instanceof Blob ? value.size : value.byteLength;
  if (size > (spec.maxBytes ?? Number.POSITIVE_INFINITY)) {
    return refuse(`must be at most ${spec.maxBytes} bytes, not ${size}`);
  }
  const said = value instanceof Blob ? value.type : "";
  const type = said === "" || said === UNKNOWN_TYPE ? assumedType(spec) : said;
  if (!matches(type, spec.contentType)) {
    return refuse(`must be ${spec.contentType}, not ${type}`);
  }
  if (value instanceof File && value.type === type) {
    return { value };
  }
  const name = value instanceof File ? value.name : "";
  const part = value instanceof Blob ? value : (value as Uint8Array<ArrayBuffer>);
  const file = new File([part], name, { type });
  if (value instanceof Blob) {
    sharePlace(value, file);
  }
  return { value: file };
}

function assumedType({ contentType }: FileSpec): string {
  return contentType === undefined || contentType.endsWith("/*") ? UNKNOWN_TYPE : contentType;
}

function matches(type: string, wanted: string | undefined): boolean {
  if (wanted === undefined || type === UNKNOWN_TYPE) {
    return true;
  }
  const essence = type.split(";", 1)[0]?.trim() ?? "";
  return wanted.endsWith("/*") ? essence.startsWith(wanted.slice(0, -1)) : essence === wanted;
}

function refuse(message: string): StandardSchemaV1.FailureResult {
  return { issues: [{ message }] };
}

function checkNames(what: string, given: object, known: object): void {
  const unknown = unknownOption(given, known);
  if (unknown !== undefined) {
    throw new TypeError(`${what}: ${unknown}`);
  }
}

function checkCount(what: string, count: number | undefined): void {
  if (count !== undefined && !(Number.isSafeInteger(count) && count >= 0)) {
    throw new TypeError(`${what} must be a whole number, 0 or more, not ${count}`);
  }
}
