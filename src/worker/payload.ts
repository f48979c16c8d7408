/** Converts arguments and results between the protocol and the values of user code. */
import { writeBigInt } from "../collections/exact-json.ts";
import type { FileArgument, FileSpec } from "../protocol/manifest.ts";
import {
  MAX_INLINE_FILE_BYTES,
  type PackedPayload,
  type SentPayload,
  unpackPayload,
} from "../protocol/messages.ts";
import type { CallFiles } from "./call-files.ts";

/** Thrown for a result that JSON cannot carry; the message says which part. */
export class UnserialisableError extends Error {
  override readonly name = "UnserialisableError";
}

/** The arguments as a value, with `File` objects in place of file indexes. */
export function readArguments(
  packed: PackedPayload,
  files: { readonly [argument: string]: FileArgument },
  callFiles: CallFiles,
): unknown {
  const payload = unpackPayload(packed);
  const value: unknown = JSON.parse(payload.json);
  if (payload.files.length === 0 || typeof value !== "object" || value === null) {
    return value;
  }
  return withFiles(value as Record<string, unknown>, Object.keys(files), (index) => {
    // A value that is no index of a file is kept, for the schema to refuse.
    const found = typeof index === "number" ? payload.files[index] : undefined;
    return found === undefined ? index : callFiles.argument(found, index as number);
  });
}

async function withFiles(
  args: Record<string, unknown>,
  names: readonly string[],
  fileAt: (index: unknown) => unknown,
): Promise<unknown> {
  for (const name of names) {
    const given = Object.hasOwn(args, name) ? args[name] : undefined;
    if (Array.isArray(given)) {
      args[name] = await Promise.all(given.map(fileAt));
    } else if (given !== undefined) {
      args[name] = await fileAt(given);
    }
  }
  return args;
}

/** How to write a result. */
export interface ResultOptions {
  readonly callFiles: CallFiles;
  /** Limit of a result that is a file. */
  readonly maxFileBytes: number;
  /** Limit of any other result. */
  readonly maxResultBytes: number;
  /** True when a string result is sent to callers as text. */
  readonly asText: boolean;
}

/** Thrown for a result above the limit. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(`the result is larger than ${maxBytes} bytes`);
    this.maxBytes = maxBytes;
  }
}

/** Writes a result to disk when its JSON is too long for a message. */
export async function writeText(
  value: unknown,
  json: string,
  { callFiles, asText }: ResultOptions,
): Promise<SentPayload> {
  const raw = asText && typeof value === "string";
  const contentType = raw ? "text/plain; charset=utf-8" : "application/json";
  return { json: "", files: [], text: await callFiles.result({ contentType }, raw ? value : json) };
}

/** A JSON result. Throws an `UnserialisableError`. */
export function writeJson(value: unknown): SentPayload {
  if (value === undefined) {
    return { json: "null", files: [] };
  }
  try {
    const isPlain = typeof value !== "object" && typeof value !== "bigint";
    const json = JSON.stringify(value, isPlain ? undefined : refuseSilentLoss);
    if (json !== undefined) {
      return { json, files: [] };
    }
  } catch (err) {
    if (err instanceof UnserialisableError) {
      throw err;
    }
    throw new UnserialisableError(reasonOf(err));
  }
  throw new UnserialisableError(`it is a ${typeof value}, which JSON cannot carry`);
}

/** Writes a result that is a file. Its media type is its own, or else that of `spec`. */
export async function writeFile(
  value: unknown,
  spec: FileSpec,
  { callFiles, maxFileBytes }: ResultOptions,
): Promise<SentPayload> {
  if (!(value instanceof Blob) && !(value instanceof Uint8Array)) {
    throw new UnserialisableError("it is not a file; return a File, Blob, Uint8Array or Buffer");
  }
  const size = value instanceof Blob ? value.size : value.byteLength;
  if (size > maxFileBytes) {
    throw new TooLargeError(maxFileBytes);
  }
  const declared = spec.contentType?.endsWith("/*") ? undefined : spec.contentType;
  const said = value instanceof Blob && value.type !== "" ? value.type : undefined;
  const contentType = said ?? declared ?? "application/octet-stream";
  const filename = value instanceof File && value.name !== "" ? value.name : undefined;
  const facts = { contentType, ...(filename !== undefined && { filename }) };
  if (size > MAX_INLINE_FILE_BYTES) {
    return { json: "0", files: [await callFiles.result(facts, value)] };
  }
  const data = value instanceof Blob ? new Uint8Array(await value.arrayBuffer()) : value;
  return { json: "0", files: [{ ...facts, data }] };
}

/** A JSON replacer that throws for values that JSON would change silently. */
function refuseSilentLoss(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === "bigint") {
    return writeBigInt(key, value);
  }
  if (typeof value === "number") {
    return Number.isFinite(value) ? value : refuse(key, String(value));
  }
  if (typeof value === "function" || typeof value === "symbol") {
    return refuse(key, `a ${typeof value}`);
  }
  if (typeof value === "object" && value !== null) {
    const original = (this as Record<string, unknown>)[key];
    if (isLossy(value) || isLossy(original)) {
      return refuse(key, `a ${(original as object).constructor.name}`, remedy(original));
    }
  }
  return value;
}

function isLossy(value: unknown): boolean {
  return (
    ArrayBuffer.isView(value) ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof Promise ||
    value instanceof Blob ||
    value instanceof ArrayBuffer
  );
}

function remedy(value: unknown): string {
  if (value instanceof Blob || value instanceof Uint8Array) {
    return "; a result that is a file needs output: file()";
  }
  return ArrayBuffer.isView(value) || value instanceof Set ? "; return Array.from(it)" : "";
}

function refuse(key: string, what: string, hint = ""): never {
  const subject = key === "" ? "it" : `${key} in it`;
  throw new UnserialisableError(`${subject} is ${what}, which JSON cannot carry${hint}`);
}

function reasonOf(err: unknown): string {
  const message = err instanceof Error ? err.message : String(err);
  if (message.includes("circular structure")) {
    return "it contains itself, which JSON cannot carry";
  }
  return message;
}
